package expr

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) unary(n *ast.UnaryNode) *term {
	t := c.valueOf(n.Node)
	if t == nil {
		return nil
	}
	return c.apply(n, n.Operator, t)
}

// binary lowers a binary operator.
func (c *compiler) binary(n *ast.BinaryNode) *term {
	switch n.Operator {
	case "&&", "and":
		return c.logic(n, token.LAND)
	case "||", "or":
		return c.logic(n, token.LOR)
	case "??":
		return c.coalesce(n, func(t *term) *term { return t }, c.valueOf)
	case "in":
		return c.in(n)
	}
	l, r := c.term(n.Left), c.term(n.Right)
	if l == nil || r == nil {
		return nil
	}
	switch n.Operator {
	case "==":
		return c.equal(n, token.EQL, l, r)
	case "!=":
		return c.equal(n, token.NEQ, l, r)
	case "contains", "startsWith", "endsWith", "matches": // false if an operand is nil
		l, r = l.value(), r.value()
		t := c.apply(n, n.Operator, l.plainly(), r.plainly())
		if t == nil {
			return nil
		}
		return c.guarded(n, t, false, slices.Concat(l.links, r.links)...)
	}
	return c.apply(n, n.Operator, l.value(), r.value())
}

func (c *compiler) mixed(n ast.Node, l, r *term) *term {
	operator := "=="
	if b, ok := n.(*ast.BinaryNode); ok {
		operator = b.Operator
	}
	return c.errorf(n, "%s cannot be used with %s and %s", operator, c.typeName(l.typ), c.typeName(r.typ))
}

// infix returns a binary operator of Go.
func infix(n ast.Node, t types.Type, op token.Token, operands ...*term) *term {
	return &term{node: n, typ: t, op: op, operands: operands, write: func(w *writer) operand {
		o := w.all(operands...)
		return join(op, o[0], o[1])
	}}
}

func join(op token.Token, l, r operand) operand {
	p := op.Precedence()
	return operand{text: operation(l.in(p), op.String(), r.in(p+1)), prec: p}
}

// arithmeticKind returns the common type of integers: int if all of them fit in an int on 32 bits, else int64.
func arithmeticKind(terms ...*term) types.BasicKind {
	for _, t := range terms {
		if !t.fits(whole) && !holds(whole, t.typ) {
			return types.Int64
		}
	}
	return types.Int
}

// integers lowers an operator on integers by a function of package wrap. An overflow is a KeyError:
//
//	wrap.Must(wrap.Add(n, 1))
func (c *compiler) integers(n ast.Node, fn string, l, r *term) *term {
	kind := arithmeticKind(l, r)
	if fn == "Remainder" && wide(l.typ) {
		kind = types.Uint64
	}
	if fn == "Remainder" && r.con == 0 {
		return c.errorf(start(r.node), "division by zero")
	}
	l, r = l.integer(kind), r.integer(kind)
	if fn == "Remainder" && r.con != nil {
		return infix(n, types.Typ[kind], token.REM, l, r)
	}
	return operated(goCall(n, types.Typ[kind], wrapPath, fn, l, r))
}
