// Package expr turns the expressions of directives into Go code. It parses an expression with expr's parser, and checks it against the
// types of the method's parameters and of the declarations of its package. It lowers the parts that most keys, costs and conditions consist
// of, which means that it writes them as Go: names, fields, calls, texts, comparisons, arithmetic of integers, ?: and ??, and fields after
// ?. . An expression with any other part, such as an index, is left as a whole to expr's virtual machine, called the machine below; package
// exprvm runs it. Everything is type-checked when generating, except values of type any and of type parameters, which are checked in each
// call. Package emit builds keys and messages from expressions.
//
// # Values
//
// An expression has the value that the machine computes, even if Go code computes it. So / divides floats, len counts the runes
// of a text, an index may be negative, and a pointer stands for its target. The value differs only where the machine would give a
// wrong answer or none:
//
//   - A value of a named type counts as one of its underlying type: status == 3 works if status has a type of its own.
//   - An integer overflow is a KeyError. With expr it wraps, and a cost that wraps may be 0. An unsigned integer of 64 bits must
//     fit in an int64; but <, min, max and % take it as it is, and == and the functions on bits take its bits.
//   - An operation on nil, an index out of range, a remainder by zero and a method call on a nil pointer are a KeyError. So is an
//     optional chain (a?.b) that ends in nil, unless an operand of ??, ==, in or contains.
//   - The alternatives of ?: and ?? get a common type, and a method may follow in a chain with ?. .
//   - $env has the parameters, the receiver and the results only, and $env?.name is nil for a method without such a parameter.
//   - clientIP(ctx) and userID(ctx) are nil if the context carries none, but compare as the empty text. If the machine runs the
//     expression, they are nil there, too.
//   - string of a slice of bytes is its text. With expr it is a list of numbers.
//   - A text never contains an address in memory: string(x) is an error if x may have one. If only the machine can tell, it is a
//     KeyError.
package expr

import (
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// Env holds the names that an expression may refer to.
type Env struct {
	reach.From
	Method   string  // the value of the identifier method
	Params   []Param // in the order of the signature
	Receiver Param   // the receiver of a concrete type's method; its Name is "" if there is none
	Absent   string  // the name of the receiver if a guard is called instead, which does not have it
	Results  []Param // only for settle and pause, which are computed after the call

	ImportedAs func(in token.Pos, name string) *types.Package // the package that the file at a position imports; may be nil
}

// Param is a parameter with its name in expressions; unnamed and blank ones are arg0, arg1, ...
type Param struct {
	Name string
	Type types.Type
}

// Want is the type of value that an expression must have.
type Want int

const (
	Island   Want = iota // a part of a template: the code's value is a string that is the same for equal values
	Bool                 // the code's value is a bool
	Int                  // the code's value is an int64, or a constant that can be assigned to one
	Duration             // the code's value is a time.Duration
)

// Names provides the identifiers in the code. Package emit implements it.
type Names interface {
	Import(*types.Package) string // the name of an imported package: strings
	Variable(i int) string        // the parameters, then the receiver, which is not nil, then the results: phone
	Local() string                // the name of a new variable in a func literal: value
	Program(p *Program) string    // the package-level variable that holds an *exprvm.Program: senderSendCodeExpr

	// Identity returns the variable that holds the result of a call of wrap.ClientIP or wrap.UserID with this argument, or "". If given is
	// true, the result is not empty.
	Identity(function, argument string) (variable string, given bool)
}

// Code is a valid expression.
type Code struct {
	// Constant is the value if it is the same in every call, else nil: a string for an Island, else a bool, an int or a float64.
	Constant any
	// Spelled reports that the code of a constant is a literal, and not the name of a constant of the package.
	Spelled bool
	// Text is the expression with normalized spaces and without comments. Expressions of one method with the same Text have the same
	// value in one call.
	Text string
	// Varies reports that the expression uses a parameter.
	Varies bool
	// Uses are the package-level and predeclared identifiers in the code, sorted. No parameter or local variable may hide them.
	Uses []string
	// Plain reports that the value has no bytes that wrap.Part would escape, as it is a number or a bool.
	Plain bool
	// Program is the program for the machine, or nil if the expression became Go code.
	Program *Program
	// Identity is the function of package wrap that gives the value if the expression is clientIP(ctx) or userID(ctx), else "".
	Identity string
	// Identities are the functions of package wrap that the code calls for a client IP or a user ID, as often as it calls them.
	Identities []string

	want  Want
	env   *Env
	value *term
}

// MayHave reports whether the value of an Island may contain a rune that follows it in a key. Another value of a number cannot go on with
// a rune that is no digit.
func (c *Code) MayHave(next rune) bool {
	switch {
	case next == ':':
		return !c.Plain
	case c.Spelled && c.Constant != nil:
		return strings.ContainsAny(c.Constant.(string), `\`+string(next))
	}
	return !c.value.number || unicode.IsDigit(next)
}

// Program is an expression for the machine. It becomes a package-level variable.
type Program struct {
	Source string   // as written
	Names  []string // the names of its arguments
	Hidden []Hidden // the members that expr cannot access by itself
}

// Hidden is a field or a method that is unexported, or that only an addressable value has.
type Hidden struct {
	Of   types.Type
	Name string
}

// Compile parses and checks e, and returns its code. Its errors stand at the wrong word.
func Compile(e annotations.Expr, env *Env, want Want) (*Code, annotations.Diagnostics) {
	c := &compiler{
		expr: e.Text, env: env, wanted: want,
		lets: map[string]*term{}, instances: map[string]types.Type{}, imported: map[string][]string{}, lowered: map[ast.Node]*term{},
	}
	root := c.parse()
	if root == nil {
		return nil, c.errs
	}
	t := c.want(root, want)
	if len(c.errs) > 0 || t == nil {
		return nil, c.errs
	}
	code := &Code{
		Constant: t.con, Spelled: t.spelled, Text: spaced(c.expr.Value), Varies: c.varies, Plain: t.plain, Identities: c.identities,
		want: want, env: env, value: t,
	}
	if !c.ofOthers {
		code.Identity = t.identity
	}
	if c.machine {
		if code.Program, code.value = c.program(t, want); code.value == nil {
			return nil, c.errs
		}
		code.Constant, code.Spelled = nil, false
	}
	code.rehearse()
	return code, nil
}

// Written is the Go text of an expression, formatted like gofmt but not indented.
type Written struct {
	Value string // a Go expression; "" if it is a choice, which needs statements
	Body  string // the statements of a func that returns the value
	Type  string // the result of that func
	Fails bool   // the value may panic
}

// Write writes the code with the given names. The Body of doc?.Owner ?? "-" is, for example:
//
//	if doc != nil {
//		return doc.Owner
//	}
//	return "-"
func (c *Code) Write(n Names) Written { return c.write(c.writer(n)) }

func (c *Code) write(w *writer) Written {
	body := formatted(w.returned(c.value))
	written := Written{Body: body, Fails: w.fails}
	if c.value.choose == nil {
		written.Value = strings.TrimPrefix(body, "return ")
	}
	if written.Value == "" || w.fails {
		written.Type = w.typ(map[Want]types.Type{Island: text, Bool: truth, Int: types.Typ[types.Int64], Duration: duration}[c.want])
	}
	return written
}

func (c *Code) writer(n Names) *writer {
	return &writer{names: n, from: c.env.From, held: map[*term]string{}, uses: map[string]bool{}}
}

// Name returns a name for a variable that holds the value, or "".
func (c *Code) Name() string {
	name := naming.Lower(source(c.value.node))
	if types.Universe.Lookup(name) != nil || !token.IsIdentifier(name) {
		return ""
	}
	return name
}

// rehearse writes the code once with arbitrary names, to find the identifiers that it uses.
func (c *Code) rehearse() {
	w := c.writer(anyNames{})
	c.write(w)
	c.Uses = slices.Sorted(maps.Keys(w.uses))
}

// anyNames provides names that occur nowhere else.
type anyNames struct{}

func (anyNames) Import(p *types.Package) string      { return "ʻ" + p.Path() }
func (anyNames) Variable(i int) string               { return "ʻv" + strconv.Itoa(i) }
func (anyNames) Local() string                       { return "ʻ" }
func (anyNames) Program(*Program) string             { return "ʻ" }
func (anyNames) Identity(_, _ string) (string, bool) { return "", false }
