package expr

import (
	"go/token"
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
		if t.present == nil && !t.maybe && !nilable(t.typ) {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
	}
	met := c.meet(start(n.Right), terms)
	if met == nil {
		return nil
	}
	if met[len(met)-1].optional() {
		return c.maybeNil(n, met[0].typ)
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
		open, value := terms[0].opened(w)
		body, v := w.block(open.yes, value)
		body = append(body, name+" = "+v.text)
		if open.text == "" {
			w.stmts = append(w.stmts, body...)
			return operand{}
		}
		rest := w.alternatives(name, terms[1:], other)
		w.add("if " + open.text + " {" + indented(body) + "}" + otherwise(rest))
		return operand{}
	})
	return stmts
}

// opened writes the condition under which t is there, "" if it is known to be, and what writes its value then.
func (t *term) opened(w *writer) (open operand, value func(*writer) operand) {
	if t.present != nil {
		return t.present(w)
	}
	return w.unlessNil(t, func(_ *writer, o operand) operand { return o })
}

// unlessNil writes the condition under which t is not nil, and what writes f of it then.
func (w *writer) unlessNil(t *term, f func(*writer, operand) operand) (open operand, value func(*writer) operand) {
	o := w.twice(t.hint, t.emit(w))
	if !w.knows(o.text) {
		open = w.againstNil(token.NEQ, o, t.typ)
	}
	return open, func(w *writer) operand { return f(w, o) }
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
