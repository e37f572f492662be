package expr

import (
	"go/token"
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
	before := terms[:len(terms)-1]
	links := make([][]*term, len(before))
	for i, t := range before {
		if links[i] = c.links(t.node); len(links[i]) == 0 && !t.optional {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
		terms[i] = t.carried()
	}
	if len(before) == 0 {
		return terms[0]
	}
	met := c.meet(start(n.Right), terms)
	if met[len(met)-1].optional {
		return c.maybeNil(n, met[0].typ)
	}
	return &term{node: n, typ: met[0].typ, plain: allPlain(met), choose: func(w *writer) string { return w.first(met, links) }}
}

// operands returns the operands of a chain of ??.
func operands(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "??" {
		return append(operands(b.Left), b.Right)
	}
	return []ast.Node{n}
}

// links returns the parts of an operand of ?? that make it nil: doc, doc.Meta and doc.Meta.Next for doc?.Meta?.Next. As Go code has
// them twice, the machine computes an operand that calls a function or has an operator.
func (c *compiler) links(n ast.Node) (parts []*term) {
	ast.Walk(&n, visitor(func(o ast.Node) {
		switch o := o.(type) {
		case *ast.MemberNode:
			if base := c.lowered[o.Node]; o.Optional && base != nil && nilable(base.typ) {
				parts = append(parts, base)
			}
		case *ast.CallNode, *ast.ConditionalNode, *ast.BinaryNode:
			if t := c.lowered[o]; t == nil || t.bare == nil {
				c.machine = true
			} else if !c.machine {
				c.identities = append(c.identities, t.identity)
			}
		}
	}))
	if t := c.lowered[n]; nilable(t.typ) || t.bare != nil {
		parts = append(parts, t.carried())
	}
	return parts
}

// first returns the statements that return the first of terms whose links are not nil, and otherwise the last one.
//
//	if doc != nil && doc.Meta != nil {
//		return doc.Meta.Title
//	}
//	return "-"
func (w *writer) first(terms []*term, links [][]*term) string {
	if len(links) == 0 {
		return w.returned(terms[0])
	}
	condition := w.present(links[0][0]).text
	for _, link := range links[0][1:] {
		condition = operation(condition, "&&", w.present(link).text)
	}
	return "if " + condition + " " + braced(w.returned(terms[0])) + "\n" + w.first(terms[1:], links[1:])
}

// present returns the condition that t is not nil, or that the identity is known.
func (w *writer) present(t *term) operand {
	if isText(t.typ) {
		return join(token.NEQ, w.term(t), primary(`""`))
	}
	return w.againstNil(token.NEQ, w.term(t), t.typ)
}
