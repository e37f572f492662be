package expr

import (
	"go/token"
	"go/types"
	"math"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// span is the least and the greatest value that an integer can have.
type span struct{ least, greatest int64 }

// span returns what is known of the values of t, an integer.
func (t *term) span() span {
	if i, ok := t.con.(int); ok {
		return span{int64(i), int64(i)}
	}
	if t.within != nil {
		return *t.within
	}
	least, greatest := bits(t.typ)
	return span{least, greatest}
}

// longest is how long anything can be that takes memory.
const longest = 1 << 48

// checkedOperator is an operator on integers that can overflow, as a function of the runtime's.
type checkedOperator struct {
	op       token.Token
	fn, hint string
	compute  func(a, b int64) (int64, bool)
}

var checkedOperators = map[string]checkedOperator{
	"+": {token.ADD, "Add", "sum", wrap.Add[int64]},
	"-": {token.SUB, "Subtract", "difference", wrap.Subtract[int64]},
	"*": {token.MUL, "Multiply", "product", wrap.Multiply[int64]},
}

// span returns what the results of the operator can be, or false if it can overflow.
func (o checkedOperator) span(l, r span) (s span, ok bool) {
	for i, a := range []int64{l.least, l.greatest} {
		for j, b := range []int64{r.least, r.greatest} {
			v, ok := o.compute(a, b)
			if !ok {
				return span{}, false
			}
			if i+j == 0 {
				s = span{v, v}
			}
			s.least, s.greatest = min(s.least, v), max(s.greatest, v)
		}
	}
	return s, true
}

// checked writes an operator on integers of Go type t. What may overflow is computed by the runtime's functions.
func (c *compiler) checked(n *ast.BinaryNode, t types.Type, l, r *term) *term {
	op := checkedOperators[n.Operator]
	if within, ok := op.span(l.span(), r.span()); ok {
		v := infix(n, t, op.op, l, r)
		v.within = &within
		return v
	}
	reason := "the " + op.hint + " overflows"
	if l.src != "" && r.src != "" && !strings.Contains(l.src+r.src, " ") {
		reason = l.src + " " + n.Operator + " " + r.src + " overflows"
	}
	return &term{node: n, typ: t, hint: "n", emit: func(w *writer) operand {
		o := w.all(l, r)
		v, ok := w.local(op.hint), w.local("ok")
		w.add(v + ", " + ok + " := " + w.std(wrapPath, op.fn) + "(" + o[0].text + ", " + o[1].text + ")")
		w.failIf("!"+ok, reason)
		return variable(v)
	}}
}

// whole is t as an int, which too great a value does not become.
func (t *term) whole() *term { return t.narrow(types.Int) }

func (t *term) narrow(to types.BasicKind) *term {
	if t.con != nil || !wide(t.typ) || t.span().greatest < math.MaxInt64 {
		return t.as(to)
	}
	name := types.Typ[to].Name()
	v := &term{node: t.node, typ: types.Typ[to], src: t.src, hint: t.hint, within: &span{0, math.MaxInt64}}
	v.emit = func(w *writer) operand {
		o := w.twice("n", t.emit(w))
		w.failIf(o.text+" > "+w.std("math", "MaxInt64"), t.said()+" does not fit an "+name)
		return o.from(name + "(" + o.text + ")")
	}
	return v
}

// truncated is t, a float, without its fraction.
func (t *term) truncated() *term {
	return &term{node: t.node, typ: whole, src: t.src, hint: "n", emit: func(w *writer) operand {
		o := w.twice("f", t.emit(w))
		w.failIf("!("+w.std("math", "MinInt64")+" <= "+o.text+" && "+o.text+" < "+w.std("math", "MaxInt64")+")", t.said()+" does not fit an int")
		return o.from("int(" + o.text + ")")
	}}
}

// fitsInt reports whether a float is that of an int, but for its fraction.
func fitsInt(f float64) bool { return math.MinInt64 <= f && f < math.MaxInt64 }

// leastOf names the least value of a signed integer type, which has no opposite.
func (w *writer) leastOf(t types.Type) string {
	name := map[types.BasicKind]string{types.Int: "MinInt", types.Int8: "MinInt8", types.Int16: "MinInt16", types.Int32: "MinInt32", types.Int64: "MinInt64"}
	return w.std("math", name[under(t).(*types.Basic).Kind()])
}

// opposite makes sure that o, which t wrote, has an opposite in t's type.
func (w *writer) opposite(t *term, o operand) operand {
	least, _ := bits(t.typ)
	var none string
	switch {
	case is(t.typ, types.IsUnsigned):
		none = " > 0"
	case t.span().least > least:
		return o
	default:
		none = " == " + w.leastOf(t.typ)
	}
	o = w.twice(t.hint, o)
	w.failIf(o.text+none, "the opposite of "+t.said()+" overflows")
	return o
}
