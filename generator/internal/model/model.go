// Package model defines the data about annotated types that the stages of the generator pass on. Collect creates it, compile adds
// the expressions, and check and emit read it. It has no logic beyond lookups.
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

	// ImportedAs is that of source.Package.
	ImportedAs func(in token.Pos, name string) []*types.Package

	// These are about all files of the package, including tests and files that are not part of this build.
	Annotated []string // the types with directives, sorted
	Declared  []string // the package-level names, including generated ones
	Imported  []string // the names that imports declare in a file

	Elsewhere []string // the paths of files that this build leaves out, and that may have something to generate
	Varies    bool     // a file with a build constraint declares a type in a signature, or a method that another package promotes
}

// Methods returns the methods of all wrappers in source order.
func (p *Package) Methods() (all []*Method) {
	for _, f := range p.Files {
		all = append(all, f.Methods()...)
	}
	return all
}

// Methods returns the methods of the wrappers of a file.
func (f *File) Methods() (all []*Method) {
	for _, w := range f.Wrappers {
		all = append(all, w.Methods...)
	}
	return all
}

// File is an annotated file.
type File struct {
	Source, Output string // the paths of the file and of the file generated from it
	Constraint     string // the expression after //go:build in the output, or ""
	Wrappers       []*Wrapper
}

// Kind is the kind of an annotated type. It decides what is generated.
type Kind int

const (
	Interface Kind = iota // a type that implements the interface and wraps another implementation
	Concrete              // for a struct or another type with methods: a type with the exported methods, which wraps a pointer
	Fields                // for a struct of funcs: a function that returns a copy with limited funcs
	Func                  // for a func type: a function that returns a limited func
	Guard                 // for a struct: a type with a method for each limited method, which that method calls
)

// Wrapper is an annotated type and what is generated for it.
type Wrapper struct {
	Pos        token.Pos
	Object     *types.TypeName
	Kind       Kind
	TypeParams []*types.TypeParam // as in the declaration of the type, but blank ones have names
	Name       string             // the name of the generated type; "" if only a function is generated
	New        string             // the name of the constructor or of the function
	RulesFunc  string             // the name of the function that returns the rules
	Scope      string             // pkg.Type, as in the names of rules
	Doc        string             // the doc comment, without directives

	// Part is true for the methods of a file that other builds lack. They stand in the output of that file, and the rest of the wrapper in
	// that of another one.
	Part      bool
	Elsewhere []string // the names of the methods that any build has

	Embeds []types.Type // interfaces whose methods only another package can declare
	Wrap   token.Pos    // of the directive wrap if the type has no rules, and the wrapper is for what it hands out

	OwnRateLimits bool   // the type has a method RateLimits of its own
	OwnUnlimited  bool   // the type has a method Unlimited of its own
	HandOut       string // the name of the function that puts limits on a value that a wrapper hands out; "" if none does
	TakeBack      string // the name of the function that undoes HandOut; "" if nothing is taken back
	Rules         []*Rule
	Methods       []*Method
}

// Method is a method of an annotated type, or a func field of a struct. A func type has one Method with the name of the type.
type Method struct {
	Pos       token.Pos
	Name      string
	Doc       string // the doc comment, without directives
	Signature *types.Signature
	Params    []expr.Param // with their names in expressions
	Receiver  *expr.Param  // the named receiver of a struct's or another concrete type's method, or nil
	Results   []expr.Param // with their names in settle and pause
	Scope     string       // pkg.Type.Method
	Rules     []*Rule      // the rules of the method, then those of the type
	Context   int          // the index of the parameter that is or has the context, or -1
	ByMethod  bool         // that parameter is not a context, but has a method Context
	// OwnContext is what the method Context of the wrapped value returns. It serves where no parameter has a context; else it is nil.
	OwnContext types.Type
	Error      int       // the index of the error among the results, or -1
	Fallback   *Fallback // nil if there is none
	Hold       *Hold     // nil if no result holds the permits of calls that run
	Env        *expr.Env // the names that its expressions may use; compile sets it

	Promoted bool // the type does not declare it itself

	Plain        annotations.Directive // Returns, Takes and Unlimited are empty because of it; zero if absent
	PlainMatters bool                  // they would not be empty without it
	Returns      map[int]*Passage      // the results that change on their way out, by their indices
	Takes        map[int]*Passage      // the parameters that change on their way in
	Unlimited    []string              // the types that hand out values of annotated types without limits

	Skipped bool // the rules of the type do not apply because of a directive
	Spared  bool // the rules of the type do not apply because the method cannot return an error
}

// DropsMessages reports whether nobody gets the messages of the rules, because every refused call goes to a fallback without the error.
func (m *Method) DropsMessages() bool {
	return m.Fallback != nil && !m.Fallback.TakesErr && (!m.Fallback.MayBeNil || m.Error < 0)
}

// LooksBack reports whether the rules of m do something when the call is over.
func (m *Method) LooksBack() bool { return m.Refunds() || m.Settles() || m.Releases() || m.Pauses() }

// Refunds reports whether a rule of m gives its permits back when the call fails. A guard learns of a failure only by an error result. A wrapper
// also learns of a panic; its methods without an error result have a fallback, and those of a guard have none.
func (m *Method) Refunds() bool {
	return (m.Error >= 0 || m.Fallback != nil) && m.any(func(r *Rule) bool { return r.Declared.Refund == ratelimit.RefundError })
}

// Settles reports whether a rule of m computes its cost after the call.
func (m *Method) Settles() bool { return m.any(func(r *Rule) bool { return !r.Rule.Settle.IsZero() }) }

// Releases reports whether a rule of m releases its permits when the call ends.
func (m *Method) Releases() bool { return m.any(func(r *Rule) bool { return r.Declared.Releases() }) }

// Pauses reports whether a rule of m may pause its key after the call.
func (m *Method) Pauses() bool { return m.any(func(r *Rule) bool { return r.Declared.Pausable }) }

func (m *Method) any(is func(*Rule) bool) bool { return slices.ContainsFunc(m.Rules, is) }

// Hold says how a result holds the permits of calls that run.
type Hold struct {
	Result   int        // its index
	Func     string     // HoldSeq or HoldSeq2 of package wrap for an iterator, else ""
	Body     bool       // it is an *http.Response
	Closes   bool       // it is an interface with Close() error
	Receives types.Type // it is an interface with Recv() (Receives, error); nil if it is not
}

// Limited is a type with a wrapper, as part of a signature.
type Limited struct {
	*Wrapper
	Args  []types.Type // its type arguments
	Value bool         // it is not a pointer
}

// Passage says what becomes of a value that passes through a wrapper. A value of an annotated type gets limits on its way out, to the caller,
// and loses them on its way in, to the implementation. What a func gets goes the other way than the func.
type Passage struct {
	*Limited                         // the type of the value; nil if it is a func
	Many            bool             // it is a slice of such values
	Params, Results map[int]*Passage // what changes in a call of the func
}

// Fallback is the function to call when a call is refused.
type Fallback struct {
	annotations.Directive
	Func annotations.Text // the function or method as written

	Qualifier string // what stands before the dot of Func, or ""
	Name      string // of the function or method

	Import   *types.Package // the package of the function if it is imported, else nil
	Of       FallbackOf
	Generic  bool // it has the type parameters of the wrapper
	MayBeNil bool // it is a variable or a field
	TakesErr bool // its last parameter is the refusal
	Spread   bool // its last parameter before the refusal is variadic
}

// FallbackOf says what the name before the dot of a fallback is.
type FallbackOf int

const (
	OfPackage FallbackOf = iota // an imported package, or the function has no dot
	OfNext                      // the wrapped value
	OfType                      // a type; the method is called on a new value of it
	OfValue                     // a variable of the package
)

// Rule is a rule of one method, or, in a Wrapper, of a type.
type Rule struct {
	annotations.Rule                // the directive
	Declared         ratelimit.Rule // what the directive says, without the expressions
	Zone             token.Pos      // the position of the time zone if the rule inherits it from its type
	OfType           bool           // the directive stands above the type

	// The templates and expressions, compiled for the parameters of the method.
	Subject []Piece
	Message []Piece // empty if the message is static
	Member  []Piece
	Cost    *expr.Code
	Permits *expr.Code // the limit if it is an expression, else nil
	When    *expr.Code
	Anchor  *expr.Code
	Settle  *expr.Code // compiled for the parameters and the results, as is Pause
	Pause   *expr.Code
}

// At returns the position of an argument's value, or of the verb if the argument is missing.
func (r *Rule) At(argument string) token.Pos {
	arg, ok := r.Arg(argument)
	switch {
	case argument == "tz" && r.Zone.IsValid():
		return r.Zone
	case !ok:
		return r.Verb.Pos
	case arg.Value.IsZero():
		return arg.Name.Pos
	}
	return arg.Value.Pos
}

// Piece is a part of a template: a literal or an expression.
type Piece struct {
	Literal string
	Expr    string // the expression as written
	Code    *expr.Code
}

// Charges returns the compiled expressions that decide what the rule charges a call.
func (r *Rule) Charges() []*expr.Code {
	return append(codes(r.Subject, r.Member), given(r.Cost, r.Permits, r.When, r.Anchor)...)
}

// Codes returns all compiled expressions of the rule.
func (r *Rule) Codes() []*expr.Code {
	return slices.Concat(r.Charges(), codes(r.Message), given(r.Settle, r.Pause))
}

// codes returns the expressions of templates.
func codes(templates ...[]Piece) (found []*expr.Code) {
	for _, p := range slices.Concat(templates...) {
		found = append(found, p.Code)
	}
	return given(found...)
}

// given returns the expressions that are not nil.
func given(codes ...*expr.Code) []*expr.Code {
	return slices.DeleteFunc(codes, func(c *expr.Code) bool { return c == nil })
}
