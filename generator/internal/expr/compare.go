package expr

import (
	"go/token"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// alike returns l and r in a type in which Go compares them as expr does, or nil if there is none. It compares integers that are
// too large for an int64 by their bits.
func alike(l, r *term) (a, b *term) {
	both := func(is func(types.Type) bool) bool { return is(l.typ) && is(r.typ) }
	kind := types.Float64
	switch {
	case both(isText):
		kind = types.String
	case both(isBool):
		kind = types.Bool
	case both(isInt):
		kind = types.Int64
	case !both(isNumber):
		return nil, nil
	}
	if types.Identical(l.typ, r.typ) || kind != types.Float64 && (l.fits(r.typ) || r.fits(l.typ)) {
		return l, r
	}
	return l.as(kind), r.as(kind)
}

// comparable reports whether the machine can compare values of these types.
func comparable(a, b types.Type) bool {
	for _, is := range []func(types.Type) bool{isNumber, isText, isBool, isList} {
		if is(a) && is(b) {
			return true
		}
	}
	return types.AssignableTo(a, b) || types.AssignableTo(b, a)
}

// compared lowers a comparison if Go gives the same result as expr. Otherwise the machine has to do it: it compares the targets of
// pointers, the elements of lists, and times of different zones.
func (c *compiler) compared(n *ast.BinaryNode, l, r *term) *term {
	a, b := alike(l, r)
	if a == nil {
		return c.onMachine(n, truth)
	}
	return infix(n, truth, signs[n.Operator], a, b)
}

func (c *compiler) order(n *ast.BinaryNode, l, r *term) *term {
	if isInt(l.typ) && isInt(r.typ) && (wide(l.typ) || wide(r.typ)) && !types.Identical(l.typ, r.typ) && !l.fits(r.typ) && !r.fits(l.typ) {
		return c.onMachine(n, truth) // the machine compares their values
	}
	return c.compared(n, l, r)
}

// equal lowers == and !=. A value that is absent equals nil only.
func (c *compiler) equal(n *ast.BinaryNode, l, r *term) *term {
	if isNil(r.typ) {
		return c.equalNil(n, l)
	}
	if isNil(l.typ) {
		return c.equalNil(n, r)
	}
	l, r = l.carried().value(), r.carried().value()
	if v, done := c.fold(n, n.Operator, l, r); done {
		return v
	}
	switch {
	case isAny(l.typ) || isAny(r.typ):
		return c.onMachine(n, truth)
	case !comparable(l.typ, r.typ):
		return c.mixed(n, l, r)
	case mayBeNil(l, r):
		return c.onMachine(n, truth)
	}
	return c.compared(n, l, r)
}

// equalNil lowers a comparison with nil.
func (c *compiler) equalNil(n *ast.BinaryNode, t *term) *term {
	op := signs[n.Operator]
	switch {
	case isNil(t.typ):
		return literal(n, op == token.EQL)
	case t.optional:
		return c.onMachine(n, truth)
	case t.unchecked == nil && !nilable(t.typ):
		return c.errorf(n, "%s is never nil: it is %s", t.said(), c.a(t.typ))
	}
	return &term{node: n, typ: truth, write: func(w *writer) operand { return w.againstNil(op, t.carried()) }}
}

// againstNil writes a comparison with nil, or of an identity with the empty text. A nil pointer in an interface or in a type parameter counts
// as nil.
func (w *writer) againstNil(op token.Token, t *term) operand {
	switch {
	case isText(t.typ):
		return join(op, w.term(t), primary(`""`))
	case !types.IsInterface(t.typ):
		return join(op, w.term(t), primary(w.word("nil")))
	}
	r := w.callOf(w.std(wrapPath, "IsNil"), w.term(t))
	if op == token.NEQ {
		return operand{text: "!" + r.text, prec: unary}
	}
	return r
}
