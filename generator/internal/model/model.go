// Package model holds what the generator knows about annotated types between its stages: data with positions, which
// collect fills, the generator completes with compiled expressions, and emit reads. It has no logic beyond lookups.
package model

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Package is a package with annotated files.
type Package struct {
	Types  *types.Package
	Module string // the path of its module, "" without one
	Files  []*File

	// Of all files of the package, whichever are generated from, also of those that are built elsewhere or for tests alone:
	Annotated []string // the types that carry directives, sorted
	Declared  []string // the names in the block of the package, with those that are generated
	Imported  []string // the names of what single files import
}

// Methods returns the methods of all wrappers, in the order of the source.
func (p *Package) Methods() (all []*Method) {
	for _, f := range p.Files {
		for _, w := range f.Wrappers {
			all = append(all, w.Methods...)
		}
	}
	return all
}

// File is an annotated file and the one that is generated from it.
type File struct {
	Source, Output string
	Constraint     string // the expression after //go:build that the output needs, or ""
	Wrappers       []*Wrapper
}

// Kind is what kind of type is annotated.
type Kind int

const (
	Interface Kind = iota // wrapped by a type that implements it
	Concrete              // a struct, or another type with methods: wrapped, behind a pointer, by a type with its exported methods
	Fields                // a struct of funcs: a function returns a copy of it with wrapped fields
	Func                  // a func type: a function wraps its values
)

// Wrapper is an annotated type and what is generated for it.
type Wrapper struct {
	Pos        token.Pos
	Object     *types.TypeName
	Kind       Kind
	TypeParams *types.TypeParamList
	Name       string // of the generated type; "" where a function is all
	New        string // of its constructor, or of the function
	RulesFunc  string // of the function that returns its rules
	Scope      string // pkg.Type, as it stands in the names of rules
	Doc        string // without directives

	TypeParamNames []string     // those of the type, but for blank ones, which get names
	Embeds         []types.Type // interfaces with the methods that only another package can declare
	OwnRateLimits  bool         // the type has a method of that name
	Rules          []*Rule
	Methods        []*Method
}

// Method is a method of an annotated type; of a struct of funcs, a field; of a func type, the only one, which has its name.
type Method struct {
	Pos       token.Pos
	Name      string
	Doc       string // without directives
	Signature *types.Signature
	Params    []expr.Param // as expressions name them
	Receiver  *expr.Param  // of a struct's method, if its declaration names it
	Results   []expr.Param // as settle names them
	Scope     string       // pkg.Type.Method
	Rules     []*Rule      // its own, then its type's
	Context   int          // the index of the parameter that is the context, or has it; -1 without any
	ByMethod  bool         // that parameter is no context, but has a method Context
	Error     int          // the index of the error among the results, or -1
	Fallback  *Fallback    // nil if there is none
	Env       *expr.Env    // what its expressions may refer to; of compile

	Skipped bool // a directive says that the rules of the type do not apply
	Spared  bool // the rules of the type do not apply, as the method cannot return an error
}

// Fallback is what is called instead of a method that is refused.
type Fallback struct {
	annotations.Directive
	Func annotations.Text // the function or method as written

	Import   *types.Package // where it is a function of another package, else nil
	Of       FallbackOf
	Generic  bool // it has the type parameters of the wrapper
	MayBeNil bool // it is a variable or a field
	TakesErr bool // its last parameter is the refusal
	Spread   bool // its last other parameter is variadic
}

// FallbackOf is what the qualifier of a fallback is.
type FallbackOf int

const (
	OfPackage FallbackOf = iota // an imported package, or there is none
	OfNext                      // the wrapped value
	OfType                      // a type, of which a new value is made
	OfValue                     // a variable of the package
)

// Rule is a directive as it applies to one method, or, in a Wrapper, to a type.
type Rule struct {
	annotations.Rule // as written
	Limit            ratelimit.Rule
	Zone             token.Pos // of the time zone where the rule has it from its type; else invalid
	OfType           bool
	Owner            string // the Scope of what the directive stands on

	// What follows is compiled against the parameters of the method.
	Subject []Piece
	Message []Piece // empty if the message is static
	Member  []Piece
	Cost    *expr.Code
	Permits *expr.Code // the limit, if that is an expression
	When    *expr.Code
	Settle  *expr.Code // over the results, too
}

// Piece is a part of a template: a literal, or an island with its code.
type Piece struct {
	Literal string
	Expr    string // the island as written
	Code    *expr.Code
}

// Codes returns all compiled expressions of the rule.
func (r *Rule) Codes() []*expr.Code {
	var codes []*expr.Code
	for _, p := range slices.Concat(r.Subject, r.Member, r.Message) {
		codes = append(codes, p.Code)
	}
	codes = append(codes, r.Cost, r.Permits, r.When, r.Settle)
	return slices.DeleteFunc(codes, func(c *expr.Code) bool { return c == nil })
}
