// Package key turns the expressions of directives into Go code. It parses an expression with expr's parser, checks it against
// the types of the method's parameters and of what its package declares, and lowers it: it writes Go that computes the same. An
// expression that would take much Go, because of a filter or a date in it, is checked, too, but left as a whole to expr's
// machine, which package exprvm runs. Only what is an any, or of a type parameter for types of several kinds, is checked
// no earlier than when a call comes. To put expressions
// together to keys and messages is for package emit.
//
// # Values
//
// The value of an expression is the one that expr's machine computes, whether that runs or not. So integers of all kinds meet as
// int, / divides floats, len counts the runes of a text, an index may be negative, and a pointer stands for what it points to.
// It differs where the machine would give a wrong answer or none:
//
//   - A named type counts as what it is made of: status == 3 is possible, also where status has a type of its own.
//   - An integer that overflows is a KeyError. With expr it wraps, and a cost that wraps may be 0. What cannot overflow, such as
//     8 times the length of a list, is not checked. An unsigned integer of 64 bits is taken for an int, and must be one; but <,
//     min, max and % take it as it is, and == and the functions on bits take its bits.
//   - An operation on nil, an index out of range, a remainder by zero and a method called on a nil pointer are a KeyError. So is
//     an optional chain (a?.b) that ends in nil where no ??, ==, in or contains takes the nil.
//   - What ?: and ?? choose between gets a type that holds all of it, and a method may follow in a chain with ?.
//   - $env has the parameters alone, and $env?.name is nil for a method that has no such parameter.
//   - clientIP(ctx) and userID(ctx) are nil where the context carries none, but compare as the empty text. Where expr's machine
//     runs the expression, they are nil there, too.
//   - A text shows no address in memory: string(x) of what may have one is refused, and where only the machine can tell, an
//     error.
package expr

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
	c := &compiler{expr: e.Text, env: env, seen: map[any]*term{}, size: map[ast.Node]int{}, instances: map[string]types.Type{}}
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

// Constant is the value of an expression that is known when generating, before it was made a string or an int64; else nil.
func (c *Code) Constant() any {
	if c == nil {
		return nil
	}
	return c.value.con
}

func (c *compiler) sorted() annotations.Errors {
	slices.SortStableFunc(c.errs, func(a, b annotations.Error) int { return int(a.Pos) - int(b.Pos) })
	return c.errs
}
