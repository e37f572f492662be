package expr

import (
	"go/token"
	"go/types"
	"math"
	"strings"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) unary(n *ast.UnaryNode) *term {
	t := c.term(n.Node)
	if t == nil {
		return nil
	}
	t = t.value()
	switch {
	case isAny(t.typ):
		return c.onMachine(n, c.dynamicResult(n.Operator))
	case (n.Operator == "!" || n.Operator == "not") && isBool(t.typ):
		return c.not(n, t.asBool())
	case (n.Operator == "-" || n.Operator == "+") && isNumber(t.typ):
		if n.Operator == "+" {
			return t
		}
		return c.negative(n, t)
	}
	return c.errorf(n, "%s cannot be used with %s", n.Operator, c.a(t.typ))
}

func (c *compiler) negative(n ast.Node, t *term) *term {
	if t.mixed {
		return c.onMachine(n, t.typ)
	}
	switch v := t.con.(type) {
	case int:
		if least, greatest := bits(t.typ); int64(v) < -greatest || int64(v) > -max(least, -greatest) {
			return c.errorf(n, "the opposite of %s overflows", t.said())
		}
		if t.lit {
			return literal(n, -v)
		}
		return opposite(n, t)
	case float64:
		return literal(n, -v)
	}
	if !isInt(t.typ) {
		return opposite(n, t)
	}
	v := opposite(n, &term{node: n, typ: t.typ, emit: func(w *writer) operand { return w.opposite(t, t.emit(w)) }})
	if s := t.span(); s.least > math.MinInt64 {
		v.within = &span{-s.greatest, -s.least}
	}
	return v
}

// opposite is -t, where that cannot overflow.
func opposite(n ast.Node, t *term) *term {
	return &term{node: n, typ: t.typ, hint: "n", emit: func(w *writer) operand {
		o := t.emit(w)
		sign := "-"
		if strings.HasPrefix(o.text, "-") {
			sign = "- "
		}
		return operand{text: sign + o.in(unary), prec: unary, calls: o.calls, stable: o.stable}
	}}
}

// binary lowers an operator by its family.
func (c *compiler) binary(n *ast.BinaryNode) *term {
	switch n.Operator {
	case "&&", "and":
		return c.both(n)
	case "||", "or":
		return c.either(n)
	case "??":
		return c.coalesce(n, c.valueOf, c.valueOf)
	case "in":
		return c.in(n)
	}
	l, r := c.term(n.Left), c.term(n.Right)
	if l == nil || r == nil {
		return nil
	}
	switch n.Operator {
	case "matches":
		return c.matches(n, l.value(), r.value())
	case "..":
		return c.span(n, l.value(), r.value())
	}
	if (isAny(l.typ) || isAny(r.typ)) && !isNil(l.typ) && !isNil(r.typ) {
		return c.onMachine(n, c.dynamicResult(n.Operator))
	}
	switch n.Operator {
	case "==", "!=":
		return c.equal(n, l, r)
	case "<", "<=", ">", ">=":
		return c.order(n, l.value(), r.value())
	case "+", "-", "*", "/", "%", "**", "^":
		return c.arithmetic(n, l.value(), r.value())
	case "contains", "startsWith", "endsWith":
		return c.search(n, l, r)
	}
	return c.errorf(n, "%s cannot be used here", n.Operator)
}

func (c *compiler) mixed(n *ast.BinaryNode, l, r *term) *term {
	return c.errorf(n, "%s cannot be used with %s and %s", n.Operator, c.typeName(l.typ), c.typeName(r.typ))
}

// infix writes a binary operator.
func infix(n ast.Node, t types.Type, op token.Token, l, r *term) *term {
	return &term{node: n, typ: t, emit: func(w *writer) operand {
		o := w.all(l, r)
		return join(op, o[0], o[1])
	}}
}

func join(op token.Token, l, r operand) operand {
	p := op.Precedence()
	return operand{
		text: l.in(p) + " " + op.String() + " " + r.in(p+1), prec: p,
		calls: l.calls || r.calls, stable: l.stable && r.stable,
	}
}

func (c *compiler) arithmetic(n *ast.BinaryNode, l, r *term) *term {
	switch {
	case n.Operator == "+" && isText(l.typ) && isText(r.typ):
		t := infix(n, types.Typ[types.String], token.ADD, l.asText(), r.asText())
		if a, ok := l.con.(string); ok && l.lit && r.lit {
			if b, ok := r.con.(string); ok {
				t.con, t.lit = a+b, true
			}
		}
		return t
	case isTime(l.typ) || isTime(r.typ):
		return c.moments(n, l, r)
	case isDuration(l.typ) || isDuration(r.typ):
		return c.durations(n, l, r)
	case !isNumber(l.typ) || !isNumber(r.typ):
		return c.mixed(n, l, r)
	case n.Operator == "%" && isInt(l.typ) && isInt(r.typ):
		return c.modulo(n, l, r.whole())
	case n.Operator == "%":
		return c.mixed(n, l, r)
	case l.con != nil && r.con != nil:
		return c.fold(n, l, r)
	}
	switch n.Operator {
	case "**", "^":
		l, r := l.asFloat(), r.asFloat()
		return call(n, types.Typ[types.Float64], "math", "Pow", l, r)
	case "/":
		return infix(n, types.Typ[types.Float64], token.QUO, l.asFloat(), r.asFloat())
	}
	if isInt(l.typ) && isInt(r.typ) {
		return c.checked(n, whole, l.whole(), r.whole())
	}
	return infix(n, types.Typ[types.Float64], checkedOperators[n.Operator].op, l.asFloat(), r.asFloat())
}

// durations are added, subtracted, and multiplied with integers.
func (c *compiler) durations(n *ast.BinaryNode, l, r *term) *term {
	switch {
	case isDuration(l.typ) && isDuration(r.typ) && (n.Operator == "+" || n.Operator == "-"):
		return c.checked(n, l.typ, l, r)
	case isDuration(l.typ) && isInt(r.typ) && n.Operator == "*":
		return c.checked(n, l.typ, l, duration(r, l.typ))
	case isInt(l.typ) && isDuration(r.typ) && n.Operator == "*":
		return c.checked(n, r.typ, duration(l, r.typ), r)
	}
	return c.mixed(n, l, r)
}

func duration(t *term, to types.Type) *term {
	if t.lit {
		return t
	}
	return converted(t.narrow(types.Int64), to)
}

func (c *compiler) modulo(n *ast.BinaryNode, l, r *term) *term {
	x, constantL := l.con.(int)
	y, constantR := r.con.(int)
	if constantR && y == 0 {
		return c.errorf(start(n.Right), "division by zero")
	}
	switch {
	case constantL && constantR:
		return literal(n, x%y)
	case wide(l.typ) && constantR && y < 0:
		return c.errorf(start(n.Right), "the divisor is not above 0")
	case wide(l.typ):
		return c.remainder(n, l, r)
	}
	l = l.asInt()
	return &term{node: n, typ: whole, hint: "n", within: left(l.span(), r.span()), emit: func(w *writer) operand {
		o := w.then([]operand{l.emit(w)}, func(w *writer) operand {
			d := r.emit(w)
			if !constantR {
				d = w.twice("divisor", d)
				w.failIf(d.text+" == 0", "division by zero")
			}
			return d
		})
		return join(token.REM, o[0], o[1])
	}}
}

// remainder lowers % behind what may be too great for an int, as a hash is, but leaves what is none.
func (c *compiler) remainder(n ast.Node, l, r *term) *term {
	l = l.as(types.Uint64)
	return &term{node: n, typ: whole, hint: "n", within: left(span{0, math.MaxInt64}, r.span()), emit: func(w *writer) operand {
		o := w.then([]operand{l.emit(w)}, func(w *writer) operand {
			if r.span().least > 0 {
				return r.emit(w)
			}
			d := w.twice("divisor", r.emit(w))
			w.failIf(d.text+" <= 0", "the divisor is not above 0")
			return d
		})
		if !r.lit {
			o[1] = o[1].from("uint64(" + o[1].text + ")")
		}
		v := join(token.REM, o[0], o[1])
		return v.from("int(" + v.text + ")")
	}}
}

// left is what a remainder can be.
func left(l, r span) *span {
	most := max(r.greatest-1, -(r.least + 1)) // of MinInt64, whose opposite is none, MaxInt64
	return &span{max(min(l.least, 0), -most), min(max(l.greatest, 0), most)}
}

// fold computes what Go would compute exactly and expr does not: floats are rounded.
func (c *compiler) fold(n *ast.BinaryNode, l, r *term) *term {
	a, aInt := l.con.(int)
	b, bInt := r.con.(int)
	if aInt && bInt {
		if op, checked := checkedOperators[n.Operator]; checked {
			v, ok := op.compute(int64(a), int64(b))
			if !ok {
				return c.errorf(n, "the %s overflows an int", op.hint)
			}
			return literal(n, int(v))
		}
	}
	x, y := float(l.con), float(r.con)
	v := map[string]func() float64{
		"+": func() float64 { return x + y }, "-": func() float64 { return x - y },
		"*": func() float64 { return x * y }, "/": func() float64 { return x / y },
		"**": func() float64 { return math.Pow(x, y) }, "^": func() float64 { return math.Pow(x, y) },
	}[n.Operator]()
	if math.IsInf(v, 0) || math.IsNaN(v) {
		if n.Operator == "/" && y == 0 {
			return c.errorf(start(n.Right), "division by zero")
		}
		return c.errorf(n, "the result of %s is too large for a float", n.Operator)
	}
	return literal(n, v)
}

func float(v any) float64 {
	if i, ok := v.(int); ok {
		return float64(i)
	}
	f, _ := v.(float64)
	return f
}
