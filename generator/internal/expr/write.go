package expr

import (
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// operand is the text of a Go expression.
type operand struct {
	text   string
	prec   int  // the precedence of its outermost operator, token.HighestPrec if there is none
	path   bool // it is short and has no effect, such as a variable or a chain of fields, so that it may be written twice
	addr   bool // its address can be taken
	calls  bool // it calls a function
	stable bool // no statement can change its value: a constant, a parameter, a local variable

	// The Go expressions that are not nil if the operand is true, and if it is false.
	yes, no []string
}

// in returns the text of o as an operand of an operator of precedence prec.
func (o operand) in(prec int) string {
	if o.prec < prec {
		return "(" + o.text + ")"
	}
	return o.text
}

// from returns a primary expression that contains o, such as a conversion or an index.
func (o operand) from(text string) operand {
	return operand{text: text, prec: token.HighestPrec, calls: o.calls, stable: o.stable}
}

// writer turns terms into text.
type writer struct {
	names   Names
	source  string // the expression
	from    reach.From
	stmts   []string
	facts   Facts             // what was known not to be nil before
	known   []string          // what is known not to be nil because of the statements so far
	called  bool              // a function of the user is called
	nested  int               // the number of blocks around the statements
	written map[*term]operand // gates that are written already

	uses map[string]bool // the package-level and predeclared identifiers in the text
}

// word returns a predeclared or package-level identifier, and records its use.
func (w *writer) word(name string) string {
	w.uses[name] = true
	return name
}

func (w *writer) add(stmt string) { w.stmts = append(w.stmts, stmt) }

// failIf adds a statement that fails if cond is true.
func (w *writer) failIf(cond string, f Failure) {
	w.add("if " + cond + " " + braced([]string{w.names.Fail(f)}))
}

// must adds a call with two results, and fails if the second, an error, is not nil. It returns the variable of the first.
func (w *writer) must(hint, call string) operand {
	value, err := w.local(hint), w.local("err")
	w.add(value + ", " + err + " := " + call)
	w.failIf(err+" != "+w.word("nil"), Failure{Err: err})
	return variable(value)
}

// braced returns statements in braces. Gofmt indents them.
func braced(stmts []string) string { return "{\n" + strings.Join(stmts, "\n") + "\n}" }

// local returns the name of a new variable. It is like hint if that hides no package-level or predeclared identifier.
func (w *writer) local(hint string) string {
	if types.Universe.Lookup(hint) != nil || !token.IsIdentifier(hint) || w.from.Package.Scope().Lookup(hint) != nil {
		hint = "value"
	}
	return w.names.Local(hint)
}

// define puts o into a new variable.
func (w *writer) define(hint string, o operand) operand {
	name := w.local(hint)
	w.add(name + " := " + o.text)
	return variable(name)
}

func variable(name string) operand {
	return operand{text: name, prec: token.HighestPrec, path: true, addr: true, stable: true}
}

// twice returns o, the Go code of t, in a form that may be written twice.
func (w *writer) twice(t *term, o operand) operand {
	if o.path {
		return o
	}
	return w.define(t.hint(), o)
}

// notNil returns o, the Go code of t, in a form that may be written twice, after adding a check that it is not nil.
func (w *writer) notNil(o operand, t *term) operand {
	o = w.twice(t, o)
	w.check(o, t.typ, t.said(w.source))
	return o
}

// check adds a check that o is not nil, unless that is known. In the expression, o is called what.
func (w *writer) check(o operand, t types.Type, what string) {
	if !w.knows(o.text) {
		w.failIf(w.againstNil(token.EQL, o, t).text, Failure{Nil: what})
		w.known = append(w.known, o.text)
	}
}

func (w *writer) knows(text string) bool { return w.facts[text] || slices.Contains(w.known, text) }

// term writes t. Its statements fail if a part that is needed is nil.
func (w *writer) term(t *term) operand {
	if o, ok := w.written[t]; ok {
		return o
	}
	return t.write(w)
}

// block writes t and returns its statements, for a block in which facts are not nil.
func (w *writer) block(facts []string, t *term) ([]string, operand) {
	begin, known := len(w.stmts), len(w.known)
	w.known = append(w.known, facts...)
	w.nested++
	o := w.term(t)
	w.nested--
	w.known = w.known[:known]
	return w.cut(begin), o
}

// cut removes and returns the statements after the first n.
func (w *writer) cut(n int) []string {
	late := slices.Clone(w.stmts[n:])
	w.stmts = w.stmts[:n]
	return late
}

// all writes terms in order.
func (w *writer) all(terms ...*term) []operand {
	ops := make([]operand, 0, len(terms))
	for _, t := range terms {
		ops = w.then(ops, t)
	}
	return ops
}

// then writes t as one more operand after ops. If it needs statements, calls in ops move to variables before them, to keep the order
// of evaluation.
func (w *writer) then(ops []operand, t *term) []operand {
	begin := len(w.stmts)
	o := w.term(t)
	late := w.cut(begin)
	for i := range ops {
		if ops[i].calls && len(late) > 0 {
			ops[i] = w.define("value", ops[i])
		}
	}
	w.stmts = append(w.stmts, late...)
	return append(ops, o)
}

// std returns the qualified name of a function of the standard library or of the runtime. The path of a predeclared function is "".
func (w *writer) std(path, name string) string {
	if path == "" {
		return w.word(name)
	}
	return w.names.Import(types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])) + "." + name
}

// typ returns the text of a type.
func (w *writer) typ(t types.Type) string {
	for _, name := range w.from.Names(t) {
		w.word(name)
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == w.from.Package {
			return ""
		}
		return w.names.Import(p)
	})
}

// conversion returns o converted to type to.
func (w *writer) conversion(to types.Type, o operand) operand {
	return o.from(w.typ(to) + "(" + o.text + ")")
}

// callOf returns a call of a function without side effects that depends only on its arguments.
func (w *writer) callOf(fn string, args ...operand) operand {
	o := operand{prec: highest, stable: true}
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
		o.calls = o.calls || a.calls
		o.stable = o.stable && a.stable
	}
	o.text = fn + "(" + List(len(fn), texts) + ")"
	return o
}

// formatted returns src formatted by gofmt, or src itself if that fails.
func formatted(src string) string {
	if b, err := format.Source([]byte(src)); err == nil {
		return string(b)
	}
	return src
}
