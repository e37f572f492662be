package expr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// coalesce lowers a ?? b ?? c: the first that is there. each lowers a value and last the one behind the last ??.
func (c *compiler) coalesce(n *ast.BinaryNode, each, last func(ast.Node) *term) *term {
	terms := []*term{last(n.Right)}
	var left ast.Node = n
	for b, ok := n, true; ok; b, ok = left.(*ast.BinaryNode) {
		if b.Operator != "??" {
			break
		}
		if b != n {
			terms = append(terms, each(b.Right))
		}
		left = b.Left
	}
	terms = append(terms, each(left))
	slices.Reverse(terms)
	if slices.Contains(terms, nil) {
		return nil
	}
	if open := c.settled(terms); len(open) < len(terms) {
		terms = open
	}
	if len(terms) == 1 {
		return terms[0]
	}
	for _, t := range terms[:len(terms)-1] {
		if t.try == nil && !nilable(t.typ) {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
	}
	met := c.meet(start(n.Right), terms)
	if met == nil {
		return nil
	}
	if met[len(met)-1].optional() {
		return c.maybe(n, met[0].typ)
	}
	t := together(n, met)
	t.emit = func(w *writer) operand { return w.firstOf(t, met) }
	return t
}

// settled leaves out operands that are nil, such as a parameter that the method does not have, and all operands behind a
// parameter that is never nil.
func (c *compiler) settled(terms []*term) []*term {
	last := terms[len(terms)-1]
	var open []*term
	for _, t := range terms {
		if t == last || !isNil(t.typ) {
			open = append(open, t)
		}
		if c.given(t) {
			break
		}
	}
	return open
}

// firstOf writes the first of terms that is there.
func (w *writer) firstOf(t *term, terms []*term) operand {
	name := w.local(t.hint)
	last := terms[len(terms)-1]
	other, o := w.block(nil, last.emit)
	if len(other) == 0 && o.stable && o.text != "nil" {
		w.add(name + " := " + o.typed(w, last).text)
	} else {
		w.add("var " + name + " " + w.typ(t.typ))
		other = append(other, name+" = "+o.text)
	}
	w.stmts = append(w.stmts, w.alternatives(name, terms[:len(terms)-1], other)...)
	return variable(name)
}

// alternatives returns statements that assign the first of terms that is there to a variable, and else run other.
func (w *writer) alternatives(name string, terms []*term, other []string) []string {
	if len(terms) == 0 {
		return other
	}
	stmts, _ := w.block(nil, func(w *writer) operand {
		t := terms[0]
		a := w.attempt(t, func(w *writer, o operand) operand {
			if nilable(t.typ) {
				o = w.twice(t.hint, o)
				w.leaveUnless(o, t.typ)
			}
			return o
		})
		rest := w.alternatives(name, terms[1:], other)
		w.stmts = append(w.stmts, w.unless(a, name+" = "+a.value.text, rest)...)
		return operand{}
	})
	return stmts
}

// unless returns statements that run stmt if all gates of a are open, and else rest.
func (w *writer) unless(a *attempt, stmt string, rest []string) []string {
	body := append(a.stmts, stmt)
	if len(a.gates) == 0 { // it is known to be there
		return body
	}
	if len(rest) == 0 {
		return a.nested(body)
	}
	if a.flat() {
		return []string{a.nested(body)[0] + otherwise(rest)}
	}
	found := w.local("found")
	stmts := append([]string{found + " := " + w.word("false")}, a.nested(append(body, found+" = "+w.word("true")))...)
	return append(stmts, "if !"+found+" {"+indented(rest)+"}")
}

func otherwise(stmts []string) string {
	switch {
	case len(stmts) == 0:
		return ""
	case len(stmts) == 1 && strings.HasPrefix(stmts[0], "if "):
		return " else " + stmts[0]
	}
	return " else {" + indented(stmts) + "}"
}
