// Package key turns the expressions of directives into Go: it parses them with expr's parser, types them with go/types
// against the parameters of the annotated method and the functions of its package, and lowers them. An expression with a part
// that has no short Go, such as a filter or a date, is left as a whole to expr's machine, which package exprvm runs; it is
// typed all the same. Only what is an any is left to be checked when a call comes. The package is not for templates or
// messages as wholes, which emit puts together from their islands, and it knows no syntax tree of Go.
//
// The code computes what expr's own machine would, whether it runs or not. Integers of any kind meet as int, / is a division of floats,
// len of a text counts its runes, indexes may be negative, a pointer stands for what it points to. It differs where the
// machine would give a wrong answer or none:
//   - a named type counts as what it is made of: status == 3 compares, also where status has a type of its own;
//   - an integer that overflows, where expr's would wrap, leaves the method with a KeyError: a cost that wraps may be 0. What
//     cannot overflow, as the length of a list times 8, is not checked. An unsigned one of 64 bits is one of an int's, but for
//     <, min, max and a remainder, which take it as it is, and for == and functions on bits, which take its bits;
//   - what meets nil, an index out of range or a remainder by zero leaves the method with a KeyError, and so does a
//     method called on a nil pointer and an optional chain (a?.b) that ends in nil where no ??, ==, in or contains takes it;
//   - what ?: and ?? choose between gets a type that holds all of it, and a chain with ?. may go on with a method;
//   - clientIP(ctx) and userID(ctx) count as nil where the context carries none, but compare as the empty text (where expr's
//     machine runs the expression, they are nil there, too);
//   - a text does not show an address: string(x) of what may have one is refused.
package key

import (
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// Env is what an expression may refer to.
type Env struct {
	Package *types.Package // its functions, constants and variables may be named
	Method  string         // the value of the identifier method
	Params  []Param        // in the order of the signature
}

// Param is a parameter as expressions name it; unnamed and blank ones are arg0, arg1, ...
type Param struct {
	Name string
	Type types.Type
}

// Want is what the place of an expression needs.
type Want int

const (
	Island Want = iota // a text with a stable form: the code's value is a Go string
	Bool               // the code's value is a bool
	Int                // the code's value is an int64, or a constant that becomes one where it is assigned
)

// Names gives the words for what the code refers to. The emitter implements it when the names of the file are settled.
type Names interface {
	Import(path string) string // the local name of an imported package
	Param(i int) string        // the local name of parameter i
	Local(hint string) string  // a new local variable's name
	Fail(reason string) string // a statement that leaves the method with a KeyError for this expression
	FailErr(err string) string // the same, with the error value that the Go expression err holds as the cause
	Program(p *Program) string // the variable of the package that holds an *exprvm.Program
}

// Code is a lowered expression.
type Code struct {
	// Type is the type of the expression before it was made a string or an int64.
	Type types.Type
	// Imports are the packages that the code names, in the order of their paths.
	Imports []*types.Package
	// Uses are the identifiers of the package block and of the universe that the code names, sorted: no parameter and no
	// local variable in its scope may have such a name.
	Uses []string
	// Plain reports that the value is free of bytes that ratelimit.Part would escape: a number, a bool.
	Plain bool
	// Program is what expr's machine is to run; nil if the expression became Go.
	Program *Program

	pkg   *types.Package
	value *term
}

// Program is an expression for expr's machine, declared once for the package.
type Program struct {
	Source string   // as written
	Names  []string // of the values it is called with
	Hidden []Hidden // what expr does not see by itself
}

// Hidden is a field or a method that is not exported, or that a value has only where it can be addressed.
type Hidden struct {
	Of   types.Type
	Name string
}

// Compile parses, checks and lowers e. Its errors stand at the word that is wrong.
func Compile(e annotations.Expr, env *Env, want Want) (*Code, annotations.Errors) {
	c := &compiler{expr: e.Text, env: env, seen: map[any]*term{}, size: map[ast.Node]int{}}
	root := c.parse()
	if root == nil {
		return nil, c.errs
	}
	t := c.want(root, want)
	if len(c.errs) > 0 || t == nil {
		return nil, c.sorted()
	}
	code := &Code{Type: t.source, Plain: t.plain, pkg: env.Package, value: t}
	if c.machine {
		if code.Program, code.value = c.program(t, want); code.value == nil {
			return nil, c.sorted()
		}
	}
	code.rehearse()
	return code, nil
}

// Render writes the code: the statements that must run first, in order, and the expression that then holds the value.
// Every string is Go as gofmt would leave it, but for indentation.
func (c *Code) Render(n Names) (stmts []string, value string) {
	w := &writer{names: n, pkg: c.pkg, once: map[*term]operand{}}
	op := c.value.emit(w)
	for i, s := range w.stmts {
		w.stmts[i] = formatted(s)
	}
	return w.stmts, formatted(op.text)
}

func (c *compiler) sorted() annotations.Errors {
	slices.SortStableFunc(c.errs, func(a, b annotations.Error) int { return int(a.Pos) - int(b.Pos) })
	return c.errs
}
