// Package expr turns the expressions of directives into Go code. It parses an expression with expr's parser and checks it
// against the types of the method's parameters and of what its package declares. What keys, costs and conditions are mostly
// made of becomes Go: names, fields, calls, texts, comparisons, arithmetic, ?: and ??, also of fields behind ?. Any other
// expression, such as one with an index, stays whole: package exprvm runs it on expr's machine. Only a value of type any, or of a
// type parameter, is checked no earlier than when a call comes. Package emit puts expressions together to keys and messages.
//
// # Values
//
// An expression has the value that expr's machine computes, whether that runs or not. So / divides floats, len counts the
// runes of a text, an index may be negative, and a pointer stands for what it points to. The value differs where the machine
// would give a wrong answer or none:
//
//   - A value of a named type counts as what the type is made of: status == 3 is possible where status has a type of its own.
//   - An integer that overflows is a KeyError. With expr it wraps, and a cost that wraps may be 0. An unsigned integer of 64
//     bits must fit an int64; but <, min, max and % take it as it is, and == and the functions on bits take its bits.
//   - An operation on nil, an index out of range, a remainder by zero and a method called on a nil pointer are a KeyError. So is
//     an optional chain (a?.b) that ends in nil where no ??, ==, in or contains takes the nil.
//   - What ?: and ?? choose between gets a type that holds all of it, and a method may follow in a chain with ?.
//   - $env has the parameters alone, and $env?.name is nil for a method without such a parameter.
//   - clientIP(ctx) and userID(ctx) are nil where the context carries none, but compare as the empty text. Where expr's machine
//     runs the expression, they are nil there, too.
//   - A text shows no address in memory: string(x) is refused where x may have one. Where only the machine can tell, it is a
//     KeyError.
package expr

import (
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// Env is what an expression may refer to.
type Env struct {
	reach.From
	Method   string  // the value of the identifier method
	Params   []Param // in the order of the signature
	Receiver Param   // of a struct's method; its Name is "" where there is none
	Results  []Param // only for what is computed behind the call
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

// Names gives the words for what the code refers to. The emitter implements it.
type Names interface {
	Import(*types.Package) string // the local name of an imported package
	Variable(i int) string        // what holds variable i: the parameters, the receiver, which is not nil, and the results are counted
	Local(hint string) string     // a new local variable's name
	Fail(Failure) string          // a statement that leaves the method with a KeyError
	Program(p *Program) string    // the variable of the package that holds an *exprvm.Program
}

// Failure is why an expression cannot be computed: a part of it is nil, there is a reason, or a variable holds an error.
type Failure struct{ Nil, Reason, Err string }

// Code is an expression that was found right.
type Code struct {
	// Constant is the value where it is known when generating, else nil: a string for an Island, else a bool, an int or a float64.
	Constant any
	// Spelled reports that the code of a constant is the value itself, and not the name of a constant of the package.
	Spelled bool
	// Text is the expression without what makes no difference, such as spaces. Expressions of one method with the same Text have
	// the same value in one call.
	Text string
	// Varies reports that the expression names a parameter.
	Varies bool
	// Uses are the identifiers of the package block and of the universe that the code names, sorted: no parameter and no
	// local variable in its scope may have such a name.
	Uses []string
	// Plain reports that the value is free of bytes that ratelimit.Part would escape: a number, a bool.
	Plain bool
	// Program is what expr's machine is to run; nil if the expression became Go.
	Program *Program

	source string
	env    *Env
	value  *term
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

// Compile parses and checks e, and finds the code for it. Its errors stand at the word that is wrong.
func Compile(e annotations.Expr, env *Env, want Want) (*Code, annotations.Diagnostics) {
	c := &compiler{expr: e.Text, env: env, instances: map[string]types.Type{}}
	root := c.parse()
	if root == nil {
		return nil, c.errs
	}
	t := c.want(root, want)
	if len(c.errs) > 0 || t == nil {
		return nil, c.errs
	}
	code := &Code{
		Constant: t.con, Spelled: t.spelled, Text: spaced(c.expr.Value), Varies: c.varies, Plain: t.plain,
		source: c.expr.Value, env: env, value: t,
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

// Written is code with its names: statements that must run first, in order, and the expression that then holds the value. All
// is Go as gofmt would leave it, but for indentation.
type Written struct {
	Stmts  []string
	Value  string
	NotNil []string // what is not nil where the value is true
}

// Facts are what code found not to be nil, as the code spells it: parameters, and fields in what they point to.
type Facts map[string]bool

// Forget drops what a call may have changed since: fields, but not the parameters themselves.
func (f Facts) Forget() {
	maps.DeleteFunc(f, func(what string, _ bool) bool { return strings.ContainsAny(what, ".[*") })
}

// Write writes the code where facts are known, and adds to these what it checks itself.
func (c *Code) Write(n Names, facts Facts) Written {
	w := c.writer(n, facts)
	op := w.term(c.value)
	for i, s := range w.stmts {
		w.stmts[i] = formatted(s)
	}
	if w.called {
		facts.Forget()
	}
	for _, what := range w.known {
		if !w.called || !strings.ContainsAny(what, ".[*") {
			facts[what] = true
		}
	}
	return Written{Stmts: w.stmts, Value: formatted(op.text), NotNil: op.yes}
}

func (c *Code) writer(n Names, facts Facts) *writer {
	w := &writer{names: n, source: c.source, from: c.env.From, facts: facts, uses: map[string]bool{}, written: map[*term]operand{}}
	if c.env.Receiver.Name != "" {
		w.known = []string{n.Variable(len(c.env.Params))}
	}
	return w
}

// rehearse writes the code once with any names, to find out what it refers to.
func (c *Code) rehearse() {
	w := c.writer(&anyNames{}, nil)
	w.term(c.value)
	c.Uses = slices.Sorted(maps.Keys(w.uses))
}

// anyNames gives names that occur nowhere else.
type anyNames struct{ locals int }

func (n *anyNames) Local(string) string {
	n.locals++
	return "ʻ" + strconv.Itoa(n.locals)
}
func (*anyNames) Import(p *types.Package) string { return "ʻ" + p.Path() }
func (*anyNames) Variable(i int) string          { return "ʻv" + strconv.Itoa(i) }
func (*anyNames) Fail(Failure) string            { return "return" }
func (*anyNames) Program(*Program) string        { return "ʻ" }
