package expr

import (
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// operand is a Go expression in the making.
type operand struct {
	text   string
	prec   int  // of its outermost operator, token.HighestPrec if there is none
	path   bool // a variable or a chain of fields: may be written twice
	addr   bool // its address can be taken
	calls  bool // it calls a function
	stable bool // no statement can change it: a constant, a parameter, a local variable

	// What is known not to be nil where the operand is true, and where it is false.
	yes, no []string
}

// in returns o's text as an operand of an operator of precedence prec.
func (o operand) in(prec int) string {
	if o.prec < prec {
		return "(" + o.text + ")"
	}
	return o.text
}

// from returns a primary expression made of o, such as a conversion or an index.
func (o operand) from(text string) operand {
	return operand{text: text, prec: token.HighestPrec, calls: o.calls, stable: o.stable}
}

// writer turns terms into text.
type writer struct {
	names   Names
	source  string // the expression
	from    reach.From
	stmts   []string
	facts   Facts             // what was known before
	known   []string          // what was found not to be nil on the way here
	called  bool              // a function of the user's is called
	written map[*term]operand // gates that ?? asked for

	uses map[string]bool // the identifiers that no import or variable of the method's stands for
}

// word names an identifier of Go's own or of the package.
func (w *writer) word(name string) string {
	w.uses[name] = true
	return name
}

func (w *writer) add(stmt string) { w.stmts = append(w.stmts, stmt) }

// failIf leaves the method if cond holds.
func (w *writer) failIf(cond string, f Failure) {
	w.add("if " + cond + " " + braced([]string{w.names.Fail(f)}))
}

// must keeps the first result of a call. The second, an error, leaves the method.
func (w *writer) must(hint, call string) operand {
	value, err := w.local(hint), w.local("err")
	w.add(value + ", " + err + " := " + call)
	w.failIf(err+" != "+w.word("nil"), Failure{Err: err})
	return variable(value)
}

// braced are statements in braces, for gofmt to indent.
func braced(stmts []string) string { return "{\n" + strings.Join(stmts, "\n") + "\n}" }

// local returns a new variable's name, like hint where that hides nothing.
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

// twice returns o, which t is written as, in a form that may be written twice.
func (w *writer) twice(t *term, o operand) operand {
	if o.path {
		return o
	}
	return w.define(t.hint(), o)
}

// notNil returns o, which t is written as, after making sure that it is not nil.
func (w *writer) notNil(o operand, t *term) operand {
	o = w.twice(t, o)
	w.check(o, t.typ, t.said(w.source))
	return o
}

// check leaves the method where o is nil, which the expression calls what.
func (w *writer) check(o operand, t types.Type, what string) {
	if !w.knows(o.text) {
		w.failIf(w.againstNil(token.EQL, o, t).text, Failure{Nil: what})
		w.known = append(w.known, o.text)
	}
}

func (w *writer) knows(text string) bool { return w.facts[text] || slices.Contains(w.known, text) }

// term writes t. A nil inside of it leaves the method.
func (w *writer) term(t *term) operand {
	if o, ok := w.written[t]; ok {
		return o
	}
	return t.write(w)
}

// block collects the statements of t for a block of its own, in which facts are not nil.
func (w *writer) block(facts []string, t *term) ([]string, operand) {
	begin, known := len(w.stmts), len(w.known)
	w.known = append(w.known, facts...)
	o := w.term(t)
	w.known = w.known[:known]
	return w.cut(begin), o
}

// cut takes back the statements behind the first n.
func (w *writer) cut(n int) []string {
	late := slices.Clone(w.stmts[n:])
	w.stmts = w.stmts[:n]
	return late
}

// all writes terms in their order.
func (w *writer) all(terms ...*term) []operand {
	ops := make([]operand, 0, len(terms))
	for _, t := range terms {
		ops = w.then(ops, t)
	}
	return ops
}

// then writes one more operand behind ops. The statements it needs must not overtake the calls in ops.
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

// std names a function of the standard library or of the module's own runtime. One of Go's own has no path.
func (w *writer) std(path, name string) string {
	if path == "" {
		return w.word(name)
	}
	return w.names.Import(types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])) + "." + name
}

// typ spells a type.
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

// conversion converts o to one of Go's own types.
func (w *writer) conversion(to types.Type, o operand) operand {
	return o.from(w.typ(to) + "(" + o.text + ")")
}

// callOf writes a call of a function that changes nothing and depends on nothing but its arguments.
func (w *writer) callOf(fn string, args ...operand) operand {
	o := operand{prec: highest, stable: true}
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
		o.calls = o.calls || a.calls
		o.stable = o.stable && a.stable
	}
	o.text = fn + "(" + strings.Join(texts, ", ") + ")"
	return o
}

// formatted is src as gofmt leaves it.
func formatted(src string) string {
	if b, err := format.Source([]byte(src)); err == nil {
		return string(b)
	}
	return src
}
