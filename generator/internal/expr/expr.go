// Package expr turns the expressions of directives into Go. It parses an expression with the parser of expr-lang/expr, checks it against the
// types of the method's parameters and of the declarations of its package, and lowers it, which means that it writes it as Go. File
// functions.txt has the Go of each function and of each operator. The program with that Go does not link expr. Package emit builds keys
// and messages from expressions.
//
// # Values
//
// An expression has the value that expr's own evaluator computes. So / divides floats, len counts the runes of a text, an index may be
// negative, and a pointer stands for its target. The value differs where the evaluator would give a wrong answer or none, and where Go
// has to know a type:
//
//   - A value of a named type counts as one of its underlying type: status == 3 works if status has a type of its own.
//   - An integer overflow is a KeyError. With expr it wraps, and a cost that wraps may be 0. An unsigned integer of 64 bits must
//     fit in an int64; but <, min, max and % take it as it is, and == and the functions on bits take its bits.
//   - An operation on nil, an index out of range, a remainder by zero and a method call on a nil pointer are a KeyError. So is an
//     optional chain (a?.b) that ends in nil, unless an operand of ??, ==, in or contains.
//   - The alternatives of ?: and ?? get a common type, and a method may follow in a chain with ?. . An integer and a float become floats.
//   - A float32 is the float64 with the same value.
//   - Two errors are compared by errors.Is, and two structs or interfaces by == of Go.
//   - clientIP(ctx) and userID(ctx) are nil if the context carries none, but compare as the empty text.
//   - string of a slice of bytes is its text. With expr it is a list of numbers.
//   - A text never contains an address in memory: string(x) is an error if x may have one.
//   - ==, !=, in, contains, startsWith and endsWith do not compute an operand if the other one is nil.
//   - min and max of NaN are NaN, as in Go, and those of an empty list are a KeyError.
//   - Go has no constant -0.0, so it is 0.0. The bounds of a range, and what is in one, are integers.
//   - Lists and maps are equal if their elements are, also numbers of different types. The elements of uniq are no pointers.
//   - A value of type any can be shown, compared with a text, a number or a bool, tested for nil, and converted by string, int and float.
//   - sort and sortBy keep the order of equal elements, and a list must have elements of one type.
//   - There is no $env.
//
// # Bounds
//
// Callers choose how long their texts and lists are. So an expression with a loop counts its steps by a wrap.Work, and a function that makes
// a text or a list much larger than its arguments has a bound of its own. More than that is a KeyError.
package expr

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"slices"

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

	OwnContext types.Type // what the method Context of the wrapped value returns, if it serves where no parameter has a context; else nil

	ImportedAs func(in token.Pos, name string) []*types.Package // that of source.Package; may be nil
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
	Message              // as Island, but equal values may have different strings
	Bool                 // the code's value is a bool
	Cost                 // the code's value is an int64, or a constant that can be assigned to one; a float is rounded up
	Limit                // as Cost, but a float is rounded down
	Duration             // the code's value is a time.Duration
	Moment               // the code's value is a time.Time
)

// Names provides the identifiers in the code. Package emit implements it.
type Names interface {
	Import(*types.Package) string      // the name of an imported package: strings
	Variable(i int) string             // the parameters, then the receiver, which is not nil, then the results: phone
	Local(hint string) string          // the name of a new variable in a func literal: value
	Package(hint, value string) string // the package-level variable with the value of a Go expression: senderSendPattern
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

	name    string
	written Written // with marks in place of names
	blanks  *blanks
}

// Compile parses and checks e, and returns its code. Its errors stand at the wrong word.
func Compile(e annotations.Expr, env *Env, want Want) (*Code, annotations.Diagnostics) {
	c := &compiler{expr: e.Text, env: env, wanted: want, lets: map[string]*term{}, inexact: map[ast.Node]bool{}}
	c.root = c.parse()
	if c.root == nil {
		return nil, c.errs
	}
	t := c.want(c.root, want)
	if len(c.errs) == 0 && t != nil && want == Island {
		c.checkOrder()
	}
	if len(c.errs) > 0 || t == nil {
		return nil, c.errs
	}
	w := &writer{names: newBlanks(env), from: env.From, want: want, held: map[*term]string{}, sure: map[*term]bool{}, uses: map[string]bool{}}
	written := w.whole(t, resultOf[want])
	return &Code{
		Constant: t.con, Spelled: t.spelled, Text: spaced(c.expr.Value), Varies: c.varies, Uses: slices.Sorted(maps.Keys(w.uses)),
		name: nameOf(t.node), written: written, blanks: w.names,
	}, nil
}

// Written is the Go text of an expression, formatted like gofmt but not indented.
type Written struct {
	Value string // a Go expression; "" if it is a choice, which needs statements
	Body  string // the statements of a func that returns the value
	Type  string // the result of that func
	Fails bool   // the value may panic
}

// Write returns the code with the given names. The Body of doc?.Owner ?? "-" is, for example:
//
//	if doc != nil {
//		return doc.Owner
//	}
//	return "-"
func (c *Code) Write(n Names) Written {
	c.blanks.fill(n)
	w := c.written
	w.Value, w.Body, w.Type = c.blanks.marks.In(w.Value), c.blanks.marks.In(w.Body), c.blanks.marks.In(w.Type)
	return w
}

// Name returns a name for a variable that holds the value, or "".
func (c *Code) Name() string { return c.name }

// nameOf returns a name for a variable that holds the value of n, or "".
func nameOf(n ast.Node) string {
	name := naming.Lower(source(n))
	if types.Universe.Lookup(name) != nil || !token.IsIdentifier(name) {
		return ""
	}
	return name
}

// resultOf are the types of the values.
var resultOf = map[Want]types.Type{
	Island: text, Message: text, Bool: truth, Cost: types.Typ[types.Int64], Limit: types.Typ[types.Int64], Duration: duration, Moment: moment,
}

// blanks are the identifiers in code that has been written, until Write gets their names.
type blanks struct {
	env   *Env
	marks *naming.Marks
	names []func(Names)     // set the names of the marks, in the order in which these were needed
	known map[string]string // the marks of packages, variables and values
}

func newBlanks(env *Env) *blanks {
	return &blanks{env: env, marks: naming.NewMarks(), known: map[string]string{}}
}

// fill sets the names of all marks.
func (b *blanks) fill(n Names) {
	for _, set := range b.names {
		set(n)
	}
}

// one returns the mark of what an id stands for.
func (b *blanks) one(id, hint string, name func(Names) string) string {
	if b.known[id] == "" {
		b.known[id] = b.mark(hint, name)
	}
	return b.known[id]
}

func (b *blanks) mark(hint string, name func(Names) string) string {
	mark := b.marks.New(hint)
	b.names = append(b.names, func(n Names) { b.marks.Set(mark, name(n)) })
	return mark
}

// Import implements Names, as the other methods do.
func (b *blanks) Import(p *types.Package) string {
	return b.one("import "+p.Path(), p.Name(), func(n Names) string { return n.Import(p) })
}

func (b *blanks) Variable(i int) string {
	return b.one(fmt.Sprint("variable ", i), cmp.Or(b.env.variables()[i].Name, "next"), func(n Names) string { return n.Variable(i) })
}

func (b *blanks) Local(hint string) string {
	return b.mark(hint, func(n Names) string { return n.Local(hint) })
}

func (b *blanks) Package(hint, value string) string {
	return b.one("value "+value, hint, func(n Names) string { return n.Package(hint, b.marks.In(value)) })
}
