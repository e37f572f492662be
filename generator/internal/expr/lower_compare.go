package expr

import (
	"cmp"
	"go/token"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

var comparisons = map[string]token.Token{
	"==": token.EQL, "!=": token.NEQ, "<": token.LSS, "<=": token.LEQ, ">": token.GTR, ">=": token.GEQ,
}

// alike returns l and r in a type in which Go compares them as expr would, or ok false if there is none. Expr compares
// integers as ints, also those that are too great for one: then == compares their bits.
func alike(l, r *term, ordered bool) (a, b *term, ok bool) {
	as := func(f func(*term) *term) (*term, *term, bool) { return f(l), f(r), true }
	switch {
	case isInt(l.typ) && isInt(r.typ):
		if types.Identical(l.typ, r.typ) || l.fits(r.typ) || r.fits(l.typ) {
			return l, r, true
		}
		return as((*term).asInt)
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
		return ordered(n, l, r)
	}
	a, b, ok := alike(l, r, true)
	if !ok {
		return c.mixed(n, l, r)
	}
	if v, ok := foldComparison(n.Operator, l.con, r.con); ok {
		return literal(n, v)
	}
	if isInt(l.typ) && (wide(l.typ) || wide(r.typ)) && types.Identical(a.typ, whole) {
		return orderWide(n, l, r)
	}
	t := infix(n, types.Typ[types.Bool], comparisons[n.Operator], a, b)
	t.hint = "ok"
	return t
}

var mirrored = map[token.Token]token.Token{token.LSS: token.GTR, token.LEQ: token.GEQ, token.GTR: token.LSS, token.GEQ: token.LEQ}

// orderWide lowers < and its like between integers of which one may be too great for an int.
func orderWide(n *ast.BinaryNode, l, r *term) *term {
	unsigned := types.Typ[types.Uint64]
	op := comparisons[n.Operator]
	if holds(unsigned, l.typ) && holds(unsigned, r.typ) {
		return infix(n, truth, op, l.as(types.Uint64), r.as(types.Uint64))
	}
	if !wide(l.typ) {
		op = mirrored[op]
	}
	return &term{node: n, typ: truth, hint: "ok", emit: func(w *writer) operand {
		var wider, other operand
		for _, t := range []*term{l, r} {
			if wide(t.typ) {
				wider = w.twice("n", t.emit(w))
				wider.text = w.cast("uint64", t.typ, wider)
			} else {
				other = w.twice("n", t.variable(w))
			}
		}
		same := join(op, wider, other.from("uint64("+other.text+")"))
		if op == token.GTR || op == token.GEQ {
			return join(token.LOR, join(token.LSS, other, word("0")), same)
		}
		return join(token.LAND, join(token.GEQ, other, word("0")), same)
	}}
}

// foldComparison compares constants, as Go does so exactly and expr with rounding.
func foldComparison(op string, l, r any) (value, ok bool) {
	if l == nil || r == nil {
		return false, false
	}
	var d int
	a, aText := l.(string)
	b, bText := r.(string)
	x, xInt := l.(int)
	y, yInt := r.(int)
	switch {
	case aText && bText:
		d = cmp.Compare(a, b)
	case xInt && yInt:
		d = cmp.Compare(x, y)
	default:
		if v, ok := l.(bool); ok {
			return (v == r) == (op == "=="), true
		}
		d = cmp.Compare(float(l), float(r))
	}
	switch op {
	case "==":
		return d == 0, true
	case "!=":
		return d != 0, true
	case "<":
		return d < 0, true
	case "<=":
		return d <= 0, true
	case ">":
		return d > 0, true
	}
	return d >= 0, true
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
		switch {
		case isTime(l.typ) && isTime(r.typ):
			return c.sameTime(n, l, r)
		case c.comparable(l.typ, r.typ):
			return c.onMachine(n, truth) // it compares what pointers point to, and lists by their elements
		}
		return c.mixed(n, l, r)
	}
	if v, ok := foldComparison(n.Operator, l.con, r.con); ok {
		return literal(n, v)
	}
	op := comparisons[n.Operator]
	switch {
	case a.try != nil && b.try != nil:
		return c.errorf(n, "either side may be nil; write ?? behind one of them")
	case a.try != nil:
		return present(n, op == token.NEQ, a, b, func(v, other operand) operand { return join(op, v, other) })
	case b.try != nil:
		return present(n, op == token.NEQ, b, a, func(v, other operand) operand { return join(op, other, v) })
	}
	t := infix(n, types.Typ[types.Bool], op, a, b)
	t.hint = "ok"
	return t
}

// equalNil lowers a comparison with nil.
func (c *compiler) equalNil(n *ast.BinaryNode, t *term) *term {
	op := comparisons[n.Operator]
	switch {
	case isNil(t.typ):
		return literal(n, op == token.EQL)
	case t.try == nil && !nilable(t.typ):
		return c.errorf(n, "%s is never nil: it is %s", t.said(), c.a(t.typ))
	}
	v := &term{node: n, typ: types.Typ[types.Bool], hint: "ok"}
	v.emit = func(w *writer) operand {
		if t.try == nil {
			return w.againstNil(op, t.emit(w), t.typ)
		}
		return w.guarded(op == token.EQL, t, func(w *writer, o operand) operand {
			if nilable(t.typ) {
				return w.againstNil(op, o, t.typ)
			}
			if o.calls || len(w.stmts) > 0 { // they may declare what is not used otherwise
				w.add("_ = " + o.text)
			}
			return word(map[bool]string{true: "false", false: "true"}[op == token.EQL])
		})
	}
	return v
}

// againstNil compares with nil. An interface may hold a nil pointer, which is nil, too, and so may a type parameter.
func (w *writer) againstNil(op token.Token, o operand, t types.Type) operand {
	r := join(op, o, word("nil"))
	if _, ok := under(t).(*types.Interface); ok {
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
