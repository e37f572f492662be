package expr

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// coalesce lowers a ?? b ?? c: the first that is there. each lowers a value and last the one behind the last ??.
func (c *compiler) coalesce(n *ast.BinaryNode, each, last func(ast.Node) *term) *term {
	var all, terms []*term
	for _, left := range operands(n.Left) {
		all = append(all, each(left))
	}
	all = append(all, last(n.Right))
	if slices.Contains(all, nil) {
		return nil
	}
	for i, t := range all {
		if i == len(all)-1 || !isNil(t.typ) {
			terms = append(terms, t)
		}
		if t.sure { // what follows may be for other methods
			break
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	for _, t := range terms[:len(terms)-1] {
		if len(t.gates) == 0 && !nilable(t.typ) {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
	}
	met := c.meet(start(n.Right), terms)
	if met == nil {
		return nil
	}
	end := len(met) - 1
	if met[end].optional() {
		return c.maybeNil(n, met[0].typ)
	}
	t := together(n, met)
	t.write = func(w *writer) operand {
		return w.choice(t, met[end], nil, func(name string, rest []string) []string { return w.alternatives(name, met[:end], rest) })
	}
	return t
}

// operands are those of a chain of ??.
func operands(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "??" {
		return append(operands(b.Left), b.Right)
	}
	return []ast.Node{n}
}

// choice writes a variable for t, which has the value of last, for which facts are not nil, unless another one applies. decide returns
// the statements that assign the others; rest are those that assign last, none where the variable begins with it.
func (w *writer) choice(t, last *term, facts []string, decide func(name string, rest []string) []string) operand {
	name := w.local(t.hint())
	rest, o := w.block(facts, last)
	if len(rest) == 0 && o.stable && o.text != "nil" {
		w.add(name + " := " + o.typed(w, last).text)
	} else {
		w.add("var " + name + " " + w.typ(t.typ))
		rest = append(rest, name+" = "+o.text)
	}
	w.stmts = append(w.stmts, decide(name, rest)...)
	return variable(name)
}

// alternatives returns statements that assign the first of terms that is there to a variable, and else run other.
func (w *writer) alternatives(name string, terms []*term, other []string) []string {
	if len(terms) == 0 {
		return other
	}
	begin := len(w.stmts)
	open, body, value := w.opened(terms[0])
	body = append(body, name+" = "+value.text)
	if open.text == "" {
		return append(w.cut(begin), body...)
	}
	rest := w.alternatives(name, terms[1:], other)
	return append(w.cut(begin), "if "+open.text+" "+braced(body)+otherwise(rest))
}

// opened writes t: the condition under which it is there, without a text if it always is, and the statements and the value
// behind that.
func (w *writer) opened(t *term) (open operand, body []string, value operand) {
	known, at := len(w.known), len(w.stmts)
	for _, g := range t.orNil() {
		o := w.twice(g, w.term(g))
		w.written[g] = o
		if w.knows(o.text) {
			continue
		}
		cond := w.present(o, g.typ)
		if open.text != "" {
			cond = join(token.LAND, open, cond)
		}
		open, at = cond, len(w.stmts)
		w.known = append(w.known, o.text)
	}
	value = w.term(t)
	body, w.known = w.cut(at), w.known[:known]
	return open, body, value
}

// present is the condition under which a gate is open.
func (w *writer) present(o operand, t types.Type) operand {
	if isText(t) { // of a context
		return join(token.NEQ, o, fixed(`""`))
	}
	return w.againstNil(token.NEQ, o, t)
}

func otherwise(stmts []string) string {
	switch {
	case len(stmts) == 0:
		return ""
	case len(stmts) == 1 && strings.HasPrefix(stmts[0], "if "):
		return " else " + stmts[0]
	}
	return " else " + braced(stmts)
}
