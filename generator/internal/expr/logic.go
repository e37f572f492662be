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
		o := w.term(t)
		return operand{text: "!" + o.in(unary), prec: unary, calls: o.calls, stable: o.stable, yes: o.no, no: o.yes}
	}}
}

// logic lowers && and ||. It nests a chain of && to the right, so that a variable of one operand is in scope in the next ones.
func (c *compiler) logic(n *ast.BinaryNode, op token.Token) *term {
	left, chained := n.Left.(*ast.BinaryNode)
	if chained && op == token.LAND && (left.Operator == "&&" || left.Operator == "and") {
		rest := &ast.BinaryNode{Operator: n.Operator, Left: left.Right, Right: n.Right}
		rest.SetLocation(n.Location())
		n = &ast.BinaryNode{Operator: left.Operator, Left: left.Left, Right: rest}
		n.SetLocation(left.Location())
		return c.logic(n, op)
	}
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
	return shortCircuit(n, op, l, r)
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

// decided returns the values that are known not to be nil if o does not decide the result of op, so that the right side is computed.
func (o *operand) decided(op token.Token) *[]string {
	if op == token.LOR {
		return &o.no
	}
	return &o.yes
}

// shortCircuit lowers an operator whose right side is computed only if the left side does not decide the result.
func shortCircuit(n ast.Node, op token.Token, l, r *term) *term {
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		a := w.term(l)
		if known := map[token.Token]string{token.LAND: "true", token.LOR: "false"}[op]; a.text == known {
			return w.term(r)
		}
		stmts, b := w.block(*a.decided(op), r)
		if len(stmts) == 0 {
			o := join(op, a, b)
			if p := op.Precedence(); b.prec == p {
				o.text = operation(a.in(p), op.String(), b.text)
			}
			*o.decided(op) = slices.Concat(*a.decided(op), *b.decided(op))
			return o
		}
		ok := w.define("ok", a)
		cond := ok.text
		if op == token.LOR {
			cond = "!" + cond
		}
		w.add("if " + cond + " " + braced(append(stmts, ok.text+" = "+b.text)))
		o := operand{text: ok.text, prec: highest, path: true}
		*o.decided(op) = slices.Concat(*a.decided(op), *b.decided(op))
		return o
	}}
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
	met := c.meet(start(n.Exp2), []*term{x, y})
	if met == nil {
		return nil
	}
	if slices.ContainsFunc(met, (*term).optional) {
		return c.maybeNil(n, met[0].typ)
	}
	t := together(n, met)
	t.write = func(w *writer) operand { return w.branch(t, w.term(cond), met[0], met[1]) }
	return t
}

// together returns a term for the value of one of terms. The caller sets its write.
func together(n ast.Node, terms []*term) *term {
	t := &term{node: n, typ: terms[0].typ, final: terms[0].final, plain: true}
	for _, each := range terms {
		t.plain = t.plain && each.plain
	}
	return t
}

// branch writes a choice between two values.
func (w *writer) branch(t *term, cond operand, x, y *term) operand {
	return w.choice(t.hint(), t, func(name string) ([]string, string) {
		then, a := w.block(cond.yes, x)
		rest, begin := w.last(name, cond.no, y)
		return []string{"if " + cond.text + " " + braced(append(then, name+" = "+a.text)) + otherwise(rest)}, begin
	})
}
