package expr

import (
	"go/token"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// coalesce lowers a ?? b ?? c: the first value that is not nil. It uses final for the value after the last ??, and each for the
// others.
func (c *compiler) coalesce(n *ast.BinaryNode, each, final func(ast.Node) *term) *term {
	var all, terms []*term
	for _, left := range operands(n.Left) {
		all = append(all, each(left))
	}
	all = append(all, final(n.Right))
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
	last := len(terms) - 1
	if last == 0 {
		return terms[0]
	}
	var present []func(*writer) string
	for i, t := range terms[:last] {
		links := c.links(t.node)
		if len(links) == 0 && !t.optional {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
		present = append(present, func(w *writer) string { return w.present(links) })
		terms[i] = t.carried().plainly()
	}
	return c.choice(n, start(n.Right), terms, present...)
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

// present returns the condition that no link is nil: doc != nil && doc.Meta != nil.
func (w *writer) present(links []*term) (condition string) {
	for i, t := range links {
		present := w.againstNil(token.NEQ, t).text
		if i > 0 {
			present = operation(condition, "&&", present)
		}
		condition = present
	}
	return condition
}
