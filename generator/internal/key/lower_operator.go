package key

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
		if t.lit {
			return literal(n, -v)
		}
	case float64:
		return literal(n, -v)
	}
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
		return c.modulo(n, l.asInt(), r.asInt())
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
	op := map[string]token.Token{"+": token.ADD, "-": token.SUB, "*": token.MUL}[n.Operator]
	if isInt(l.typ) && isInt(r.typ) {
		return infix(n, types.Typ[types.Int], op, l.asInt(), r.asInt())
	}
	return infix(n, types.Typ[types.Float64], op, l.asFloat(), r.asFloat())
}

// durations are added, subtracted, and multiplied with integers.
func (c *compiler) durations(n *ast.BinaryNode, l, r *term) *term {
	switch {
	case isDuration(l.typ) && isDuration(r.typ) && n.Operator == "+":
		return infix(n, l.typ, token.ADD, l, r)
	case isDuration(l.typ) && isDuration(r.typ) && n.Operator == "-":
		return infix(n, l.typ, token.SUB, l, r)
	case isDuration(l.typ) && isInt(r.typ) && n.Operator == "*":
		return infix(n, l.typ, token.MUL, l, duration(r, l.typ))
	case isInt(l.typ) && isDuration(r.typ) && n.Operator == "*":
		return infix(n, r.typ, token.MUL, duration(l, r.typ), r)
	}
	return c.mixed(n, l, r)
}

func duration(t *term, to types.Type) *term {
	if t.lit {
		return t
	}
	return converted(t, to)
}

func (c *compiler) modulo(n *ast.BinaryNode, l, r *term) *term {
	x, constantL := l.con.(int)
	y, constantR := r.con.(int)
	if constantR && y == 0 {
		return c.errorf(start(n.Right), "division by zero")
	}
	if constantL && constantR {
		return literal(n, x%y)
	}
	return &term{node: n, typ: types.Typ[types.Int], hint: "n", emit: func(w *writer) operand {
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

// fold computes what Go would compute exactly and expr does not: ints that wrap, floats that are rounded.
func (c *compiler) fold(n *ast.BinaryNode, l, r *term) *term {
	a, aInt := l.con.(int)
	b, bInt := r.con.(int)
	if aInt && bInt {
		switch n.Operator {
		case "+":
			return literal(n, a+b)
		case "-":
			return literal(n, a-b)
		case "*":
			return literal(n, a*b)
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
