package expr

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// coalesce lowers a ?? b ?? c: the first value that is not nil. It uses last for the value after the last ??, and each for the
// others.
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
		if t.sure { // the rest is not needed for this method, and may not be valid for it
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
	if met[len(met)-1].optional() {
		return c.maybeNil(n, met[0].typ)
	}
	return &term{node: n, typ: met[0].typ, plain: allPlain(met), choose: func(w *writer) string { return w.first(met) }}
}

// operands returns the operands of a chain of ??.
func operands(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "??" {
		return append(operands(b.Left), b.Right)
	}
	return []ast.Node{n}
}

// first returns the statements that return the first of terms that is not nil, and otherwise the last one.
//
//	if doc != nil && doc.Meta != nil {
//		return doc.Meta.Title
//	}
//	return "-"
func (w *writer) first(terms []*term) string {
	t := terms[0]
	if len(terms) == 1 {
		return w.returned(t)
	}
	return w.unlessNil(t.orNil(), "", t) + "\n" + w.first(terms[1:])
}

// unlessNil returns the statements that return t if none of gates is nil, and the condition is true. A gate that is more than a path gets a
// variable.
func (w *writer) unlessNil(gates []*term, condition string, t *term) string {
	if len(gates) == 0 {
		return "if " + condition + " " + braced(w.returned(t))
	}
	g := gates[0]
	o := w.term(g)
	if path.MatchString(o.text) {
		w.held[g] = o.text
		present := w.present(o, g.typ).in(token.LAND.Precedence())
		if condition != "" {
			present = operation(condition, "&&", present)
		}
		return w.unlessNil(gates[1:], present, t)
	}
	name := w.local(g.hint())
	w.held[g] = name
	inner := w.unlessNil(gates[1:], name+" := "+o.text+"; "+w.present(variable(name), g.typ).text, t)
	if condition != "" {
		return "if " + condition + " " + braced(inner)
	}
	return inner
}

// present returns the condition that a gate is not nil.
func (w *writer) present(o operand, t types.Type) operand {
	if isText(t) { // clientIP or userID
		return join(token.NEQ, o, primary(`""`))
	}
	return w.againstNil(token.NEQ, o, t)
}
