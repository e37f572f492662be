package expr

import (
	"go/format"
	"go/token"
	"go/types"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// operand is the text of a Go expression.
type operand struct {
	text string
	prec int  // the precedence of its outermost operator, token.HighestPrec if there is none
	addr bool // its address can be taken
}

// in returns the text of o as an operand of an operator of precedence prec:
//
//	(a + b)
func (o operand) in(prec int) string {
	if o.prec < prec {
		return "(" + o.text + ")"
	}
	return o.text
}

// primary returns the operand for a text without operators outside of brackets.
func primary(text string) operand { return operand{text: text, prec: token.HighestPrec} }

func variable(name string) operand {
	return operand{text: name, prec: token.HighestPrec, addr: true}
}

// writer turns terms into text.
type writer struct {
	names *blanks
	from  reach.From
	want  Want             // what the expression is for
	fails bool             // what is written may panic
	work  string           // the variable that counts steps; "" if nothing counts any
	held  map[*term]string // the variables that hold values
	sure  map[*term]bool   // the terms that have been compared with nil
	uses  map[string]bool  // the package-level and predeclared identifiers in the text
}

// whole writes a whole expression, whose value has a type.
func (w *writer) whole(t *term, typ types.Type) Written {
	stmts := w.returned(t)
	if w.work != "" {
		stmts = "var " + w.work + " " + w.std(wrapPath, "Work") + "\n" + stmts
	}
	written := Written{Body: formatted(stmts), Fails: w.fails}
	if t.choose == nil && w.work == "" {
		written.Value = strings.TrimPrefix(written.Body, "return ")
	}
	if written.Value == "" || w.fails {
		written.Type = w.typ(typ)
	}
	return written
}

// word returns a predeclared or package-level identifier, and records its use:
//
//	int64
func (w *writer) word(name string) string {
	w.uses[name] = true
	return name
}

// term writes t. A choice becomes a func literal that is called in place:
//
//	func() string {
//		if ok {
//			return phone
//		}
//		return "-"
//	}()
func (w *writer) term(t *term) operand {
	switch name := w.held[t]; {
	case name != "":
		return variable(name)
	case t.choose != nil:
		return primary("func() " + w.typ(t.typ) + " " + braced(t.choose(w)) + "()")
	}
	return t.write(w)
}

// typed writes t so that a variable with this value gets the type of t:
//
//	int64(5)
func (w *writer) typed(t *term) operand {
	if t.lit && !types.Identical(defaultType(t.con), t.typ) {
		return w.conversion(t.typ, w.term(t))
	}
	return w.term(t)
}

// returned writes the statements that return t:
//
//	return doc.Owner
func (w *writer) returned(t *term) string {
	if t.choose != nil && w.held[t] == "" {
		return t.choose(w)
	}
	return "return " + w.term(t).text
}

// all writes terms in order.
func (w *writer) all(terms ...*term) []operand {
	ops := make([]operand, len(terms))
	for i, t := range terms {
		ops[i] = w.term(t)
	}
	return ops
}

// texts returns the texts of operands.
func texts(operands []operand) []string {
	all := make([]string, len(operands))
	for i, o := range operands {
		all[i] = o.text
	}
	return all
}

// braced returns statements in braces. Gofmt indents them. For example:
//
//	{ return doc.Owner }
func braced(stmts string) string { return "{\n" + stmts + "\n}" }

// must returns the first result of a call that also returns an error, and panics if there is one: wrap.Must(tenant(ctx)). If a limit or an anchor
// cannot be computed, the program is at fault: wrap.MustForLimit(planOf(ctx)).
func (w *writer) must(call operand) operand {
	if w.want == Limit || w.want == Moment {
		return w.mustBy("MustForLimit", call)
	}
	return w.mustBy("Must", call)
}

// mustBy is must by a function of package wrap.
func (w *writer) mustBy(fn string, call operand) operand {
	w.fails = true
	return w.callOf(w.std(wrapPath, fn), call)
}

// std returns the qualified name of a function of the standard library or of the runtime. The path of a predeclared function is "". For
// example:
//
//	strings.ToLower
func (w *writer) std(path, name string) string {
	if path == "" {
		return w.word(name)
	}
	return w.names.Import(types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])) + "." + name
}

// typ returns the text of a type:
//
//	*docs.Document
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

// conversion returns o converted to type to: int64(n).
func (w *writer) conversion(to types.Type, o operand) operand {
	typ := w.typ(to)
	if typ[0] == '*' || strings.HasPrefix(typ, "func") {
		typ = "(" + typ + ")"
	}
	return primary(typ + "(" + o.text + ")")
}

// counter returns the address of the variable that counts the steps of the expression:
//
//	&work
func (w *writer) counter() operand {
	if w.work == "" {
		w.work = w.names.Local("work")
	}
	return operand{text: "&" + w.work, prec: unary}
}

// composite returns a literal of a slice or a map: []string{"a", "b"}.
func (w *writer) composite(t types.Type, elements []string) operand {
	typ := w.typ(t)
	return primary(typ + "{" + List(typ, elements) + "}")
}

// callOf returns a call of a function: tenant(ctx).
func (w *writer) callOf(fn string, args ...operand) operand {
	return primary(fn + "(" + List(fn, texts(args)) + ")")
}

// formatted returns src formatted by gofmt, or src itself if that fails.
func formatted(src string) string {
	if b, err := format.Source([]byte(src)); err == nil {
		return string(b)
	}
	return src
}
