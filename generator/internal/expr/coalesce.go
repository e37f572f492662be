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
		if t.decided { // the rest is not needed for this method, and may not be valid for it
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

// links returns the parts of an operand of ?? that make it nil: doc, doc.Meta and doc.Meta.Next for doc?.Meta?.Next. Each but the first is a
// field of the one before.
func (c *compiler) links(operand ast.Node) (parts []*term) {
	for n := operand; n != nil; {
		switch chain := n.(type) {
		case *ast.MemberNode:
			if base := c.lowered[chain.Node]; chain.Optional && base != nil && nilable(base.typ) {
				parts = append(parts, base)
			}
			n = chain.Node
		case *ast.CallNode:
			n = chain.Callee
		case *ast.ChainNode:
			n = chain.Node
		default:
			n = nil
		}
	}
	slices.Reverse(parts)
	if t := c.lowered[operand]; nilable(t.typ) || t.unchecked != nil {
		parts = append(parts, t.carried())
	}
	return parts
}

// present returns the condition that no link is nil: doc != nil && doc.Meta != nil. If the first link is more than a path, it gets a variable,
// so that its functions are called once:
//
//	value := find(id); value != nil && value.Meta != nil
func (w *writer) present(links []*term) (condition string) {
	variable := ""
	for i, t := range links {
		if o := w.term(t); i == 0 && !path.MatchString(o.text) {
			w.held[t] = w.names.Local()
			variable = w.held[t] + " := " + o.text + "; "
		}
		present := w.againstNil(token.NEQ, t).text
		if i > 0 {
			present = operation(condition, "&&", present)
		}
		condition = present
	}
	return variable + condition
}
