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
		opposite.sure = t.sure
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
		t.con, t.sure = r.con, true
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
//
//	if c {
//		return a
//	}
//	return b
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
	met := c.meet(start(n.Exp2), []*term{x, y})
	if met == nil {
		return nil
	}
	if mayBeNil(met...) {
		return c.maybeNil(n, met[0].typ)
	}
	return &term{node: n, typ: met[0].typ, plain: allPlain(met), choose: func(w *writer) string {
		return "if " + w.term(cond).text + " " + braced(w.returned(met[0])) + "\n" + w.returned(met[len(met)-1])
	}}
}

func allPlain(terms []*term) bool {
	return !slices.ContainsFunc(terms, func(t *term) bool { return !t.plain })
}
