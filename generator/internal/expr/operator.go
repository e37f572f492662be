package expr

import (
	"go/token"
	"go/types"
	"regexp"

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
		return c.coalesce(n, c.valueOf, c.valueOf)
	case "in":
		return c.in(n)
	}
	l, r := c.term(n.Left), c.term(n.Right)
	if l == nil || r == nil {
		return nil
	}
	switch {
	case l.absent || r.absent:
		return c.unequal(n, l, r)
	case n.Operator == "==" || n.Operator == "!=":
		return c.equal(n, l, r)
	}
	return c.apply(n, n.Operator, l.value(), r.value())
}

// signs maps comparisons to those of Go.
var signs = map[string]token.Token{
	"==": token.EQL, "!=": token.NEQ, "<": token.LSS, "<=": token.LEQ, ">": token.GTR, ">=": token.GEQ,
}

// isPattern reports whether t is a constant regular expression. A pattern from a caller could take any time.
func (c *compiler) isPattern(t *term) bool {
	pattern, ok := t.con.(string)
	if !ok {
		c.errorf(start(t.node), "matches needs a constant pattern")
		return false
	}
	_, err := regexp.Compile(pattern)
	if err != nil {
		c.errorf(start(t.node), "%v", err)
	}
	return err == nil
}

func (c *compiler) mixed(n *ast.BinaryNode, l, r *term) *term {
	return c.errorf(n, "%s cannot be used with %s and %s", n.Operator, c.typeName(l.typ), c.typeName(r.typ))
}

// infix returns a binary operator of Go.
func infix(n ast.Node, t types.Type, op token.Token, operands ...*term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand {
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

// integers lowers an operator on integers by a function of package checked. An overflow is a KeyError.
func (c *compiler) integers(n ast.Node, fn string, l, r *term) *term {
	if fn == "Remainder" && r.con == 0 {
		return c.errorf(start(r.node), "division by zero")
	}
	if fn == "Remainder" && wide(l.typ) {
		return c.onMachine(n, whole) // the machine takes values that are too large for an int64
	}
	kind := arithmeticKind(l, r)
	l, r = l.integer(kind), r.integer(kind)
	if fn == "Remainder" && r.con != nil {
		return infix(n, types.Typ[kind], token.REM, l, r)
	}
	return checked(n, types.Typ[kind], fn, l, r)
}
