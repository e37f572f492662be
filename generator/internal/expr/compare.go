package expr

import (
	"go/token"
	"go/types"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

var comparisons = map[string]token.Token{
	"==": token.EQL, "!=": token.NEQ, "<": token.LSS, "<=": token.LEQ, ">": token.GTR, ">=": token.GEQ,
}

// alike returns l and r in a type in which Go compares them as expr would, or ok false if there is none. Integers that
// are too great for an int64 are compared by their bits.
func alike(l, r *term, ordered bool) (a, b *term, ok bool) {
	as := func(f func(*term) *term) (*term, *term, bool) { return f(l), f(r), true }
	switch {
	case isInt(l.typ) && isInt(r.typ):
		if types.Identical(l.typ, r.typ) || l.fits(r.typ) || r.fits(l.typ) {
			return l, r, true
		}
		return as(func(t *term) *term { return t.as(types.Int64) })
	case isNumber(l.typ) && isNumber(r.typ):
		if types.Identical(l.typ, r.typ) {
			return l, r, true
		}
		return as((*term).asFloat)
	case isText(l.typ) && isText(r.typ), isBool(l.typ) && isBool(r.typ) && !ordered:
		if types.Identical(l.typ, r.typ) || l.fits(r.typ) || r.fits(l.typ) {
			return l, r, true
		}
		if isText(l.typ) {
			return as((*term).asText)
		}
		return as((*term).asBool)
	}
	return nil, nil, false
}

func (c *compiler) order(n *ast.BinaryNode, l, r *term) *term {
	if isTime(l.typ) && isTime(r.typ) {
		return c.onMachine(n, truth)
	}
	a, b, ok := alike(l, r, true)
	switch {
	case !ok:
		return c.mixed(n, l, r)
	case isInt(l.typ) && isInt(r.typ) && wide(l.typ) != wide(r.typ) && !l.fits(r.typ) && !r.fits(l.typ):
		return c.onMachine(n, truth) // which compares their values
	}
	t := infix(n, truth, comparisons[n.Operator], a, b)
	t.hint = "ok"
	return t
}

// equal lowers == and !=. A side that may be absent equals nothing but nil.
func (c *compiler) equal(n *ast.BinaryNode, l, r *term) *term {
	if l.gone || r.gone {
		both := isNil(l.typ) && isNil(r.typ)
		return c.unequal(n, both == (n.Operator == "=="), l, r)
	}
	if isNil(r.typ) || isNil(l.typ) {
		if isNil(r.typ) {
			return c.equalNil(n, l)
		}
		return c.equalNil(n, r)
	}
	l, r = l.carried().value(), r.carried().value()
	a, b, ok := alike(l, r, false)
	if !ok {
		if c.comparable(l.typ, r.typ) {
			return c.onMachine(n, truth) // it compares what pointers point to, lists by their elements, and times in any zone
		}
		return c.mixed(n, l, r)
	}
	if l.optional() || r.optional() {
		return c.onMachine(n, truth)
	}
	t := infix(n, truth, comparisons[n.Operator], a, b)
	t.hint = "ok"
	return t
}

// equalNil lowers a comparison with nil.
func (c *compiler) equalNil(n *ast.BinaryNode, t *term) *term {
	op := comparisons[n.Operator]
	switch {
	case isNil(t.typ):
		return literal(n, op == token.EQL)
	case t.bare != nil:
		return infix(n, truth, op, t.bare, literal(n, ""))
	case t.maybe:
		return c.onMachine(n, truth)
	case !nilable(t.typ):
		return c.errorf(n, "%s is never nil: it is %s", t.said(), c.a(t.typ))
	}
	v := &term{node: n, typ: truth, hint: "ok"}
	v.write = func(w *writer) operand {
		o := w.term(t)
		if o.path && w.knows(o.text) {
			return fixed(w.word(strconv.FormatBool(op != token.EQL)))
		}
		return w.againstNil(op, o, t.typ)
	}
	return v
}

// againstNil compares with nil. An interface may hold a nil pointer, which is nil, too, and so may a type parameter.
func (w *writer) againstNil(op token.Token, o operand, t types.Type) operand {
	r := join(op, o, fixed(w.word("nil")))
	if _, ok := t.Underlying().(*types.Interface); ok {
		r.text, r.prec = w.std(wrapPath, "IsNil")+"("+o.text+")", highest
		if op == token.NEQ {
			r.text, r.prec = "!"+r.text, unary
		}
	}
	if o.path && op == token.NEQ {
		r.yes = []string{o.text}
	}
	if o.path && op == token.EQL {
		r.no = []string{o.text}
	}
	return r
}
