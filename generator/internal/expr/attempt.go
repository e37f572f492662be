package expr

import (
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// attempt is a term written where it may turn out to be absent.
type attempt struct {
	gates []gate
	stmts []string // behind the last gate
	value operand
}

// gate is a condition without which the term is absent.
type gate struct {
	stmts     []string // before the condition
	open, not string   // the condition, and its opposite
	fact      string   // what is not nil behind the gate
}

// attempt writes t up to where f has made a value of it. What it needs before its first gate goes to w.
func (w *writer) attempt(t *term, f func(*writer, operand) operand) *attempt {
	exits, stmts, known := w.exits, w.stmts, len(w.known)
	a := &attempt{}
	w.exits, w.stmts = a, nil
	o := t.attempt(w)
	a.value = f(w, o)
	a.stmts, w.exits, w.stmts, w.known = w.stmts, exits, stmts, w.known[:known]
	if len(a.gates) > 0 {
		w.stmts = append(w.stmts, a.gates[0].stmts...)
		a.gates[0].stmts = nil
	} else {
		w.stmts = append(w.stmts, a.stmts...)
		a.stmts = nil
	}
	return a
}

// leaveUnless ends the attempt, or the method where there is none, if o is nil.
func (w *writer) leaveUnless(o operand, t types.Type) {
	if !w.knows(o.text) {
		w.gate(gate{open: w.againstNil(token.NEQ, o, t).text, not: w.againstNil(token.EQL, o, t).text, fact: o.text})
		w.known = append(w.known, o.text)
	}
}

func (w *writer) gate(g gate) {
	g.stmts = w.stmts
	w.stmts = nil
	w.exits.gates = append(w.exits.gates, g)
}

// flat reports whether all the gates can stand in one condition.
func (a *attempt) flat() bool {
	return !slices.ContainsFunc(a.gates, func(g gate) bool { return len(g.stmts) > 0 })
}

// open is the condition that all gates are open.
func (a *attempt) open() operand {
	var o operand
	var texts []string
	for _, g := range a.gates {
		texts = append(texts, g.open)
		o.yes = append(o.yes, g.fact)
	}
	o.text, o.prec = strings.Join(texts, " && "), token.LAND.Precedence()
	if len(texts) == 1 {
		o.prec = token.EQL.Precedence()
	}
	return o
}

// shut is the opposite of open.
func (a *attempt) shut() operand {
	o := a.open()
	var texts []string
	for _, g := range a.gates {
		texts = append(texts, g.not)
	}
	o.text, o.no, o.yes = strings.Join(texts, " || "), o.yes, nil
	if len(texts) > 1 {
		o.prec = token.LOR.Precedence()
	}
	return o
}

// nested puts body behind all the gates, one within the other.
func (a *attempt) nested(body []string) []string {
	for end := len(a.gates); end > 0; {
		begin := end - 1
		for begin > 0 && len(a.gates[begin].stmts) == 0 {
			begin--
		}
		cond := (&attempt{gates: a.gates[begin:end]}).open().text
		body = append(slices.Clip(a.gates[begin].stmts), "if "+cond+" {"+indented(body)+"}")
		end = begin
	}
	return body
}

// guarded writes a bool made of a term that may be absent; absent is its value then.
func (w *writer) guarded(absent bool, t *term, f func(*writer, operand) operand) operand {
	a := w.attempt(t, f)
	switch {
	case len(a.gates) == 0:
		return a.value
	case len(a.stmts) > 0 || !a.flat():
		found := w.local("found")
		w.add(found + " := " + w.word(strconv.FormatBool(absent)))
		for _, s := range a.nested(append(a.stmts, found+" = "+a.value.text)) {
			w.add(s)
		}
		return variable(found)
	case absent && a.value.text == "false":
		return a.shut()
	case !absent && a.value.text == "true":
		return a.open()
	case absent:
		o := a.shut()
		r := join(token.LOR, o, a.value)
		r.no = append(o.no, a.value.no...)
		return r
	}
	o := a.open()
	r := join(token.LAND, o, a.value)
	r.yes = append(o.yes, a.value.yes...)
	return r
}

// present is a bool made of a term that may be absent and of another one; absent is its value then.
func present(n ast.Node, absent bool, t, other *term, f func(v, other operand) operand) *term {
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		o := other.emit(w)
		return w.guarded(absent, t, func(_ *writer, v operand) operand { return f(v, o) })
	}}
}
