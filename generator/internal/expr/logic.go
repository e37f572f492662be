package expr

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) not(n ast.Node, t *term) *term {
	if v, ok := t.con.(bool); ok && t.lit {
		opposite := literal(n, !v)
		opposite.decided = t.decided
		return opposite
	}
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		return operand{text: "!" + w.term(t).in(unary), prec: unary}
	}}
}

// logic lowers && and ||.
func (c *compiler) logic(n *ast.BinaryNode, op token.Token) *term {
	l := c.condition(n.Left, n.Operator)
	switch {
	case knows(l, op == token.LOR):
		return l
	case knows(l, op == token.LAND):
		return c.condition(n.Right, n.Operator)
	}
	r := c.condition(n.Right, n.Operator)
	if l == nil || r == nil {
		return nil
	}
	t := infix(n, truth, op, l, r)
	if knows(r, op == token.LOR) { // whatever the left operand is
		t.con, t.decided = r.con, true
	}
	return t
}

// condition lowers an operand that must be a bool.
func (c *compiler) condition(n ast.Node, role string) *term {
	t := c.term(n)
	if t == nil {
		return nil
	}
	if t = t.value(); isAny(t.typ) {
		return c.onMachine(n, truth)
	}
	if !isBool(t.typ) {
		return c.errorf(start(n), "%s needs a bool; this is %s", role, c.a(t.typ))
	}
	return t.as(types.Bool)
}

// conditional lowers c ? a : b and if c { a } else { b }. It uses each to lower the values.
func (c *compiler) conditional(n *ast.ConditionalNode, each func(ast.Node) *term) *term {
	cond := c.condition(n.Cond, "the condition")
	switch {
	case knows(cond, true):
		return each(n.Exp1)
	case knows(cond, false):
		return each(n.Exp2)
	}
	x, y := each(n.Exp1), each(n.Exp2)
	if cond == nil || x == nil || y == nil {
		return nil
	}
	return c.choice(n, start(n.Exp2), []*term{x, y}, func(w *writer) string { return w.term(cond).text })
}

// choice lowers the first of terms whose condition is true, and otherwise the last one. An error that they have no type stands at last.
//
//	if doc != nil && doc.Meta != nil {
//		return doc.Meta.Title
//	}
//	return "-"
func (c *compiler) choice(n, last ast.Node, terms []*term, conditions ...func(*writer) string) *term {
	met := c.meet(last, terms)
	switch {
	case met == nil:
		return nil
	case mayBeNil(met...):
		return c.maybeNil(n, met[0].typ)
	}
	isPlain := !slices.ContainsFunc(met, func(t *term) bool { return !t.plain })
	return &term{node: n, typ: met[0].typ, plain: isPlain, choose: func(w *writer) (stmts string) {
		for i, holds := range conditions {
			stmts += "if " + holds(w) + " " + braced(w.returned(met[i])) + "\n"
		}
		return stmts + w.returned(met[len(met)-1])
	}}
}
