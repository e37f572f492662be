package expr

import (
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// slice lowers x[from:to], of a text in bytes. Bounds may be negative; out of range they are the nearest that is in it.
func (c *compiler) slice(n *ast.SliceNode) *term {
	base := c.valueOf(n.Node)
	from, ok1 := c.sliceBound(n.From)
	to, ok2 := c.sliceBound(n.To)
	if base == nil || !ok1 || !ok2 {
		return nil
	}
	if isAny(base.typ) || c.dynamicBound(n.From) || c.dynamicBound(n.To) {
		return c.onMachine(n, base.typ)
	}
	if a, ok := aggregate(base.typ).(*types.Array); ok {
		return c.onMachine(n, types.NewSlice(a.Elem()))
	}
	if _, ok := under(base.typ).(*types.Slice); !ok && !isText(base.typ) {
		return c.errorf(n, "%s cannot be sliced here", c.a(base.typ))
	}
	t := &term{node: n, typ: base.typ, mixed: base.mixed, hint: "part"}
	t.emit = func(w *writer) operand {
		o := w.twice("whole", base.emit(w))
		// Expr computes the upper bound first, and lets the lower one not pass it.
		length := "len(" + o.text + ")"
		high := w.bounded(to, length, length)
		limit := length
		if to != nil && !below(from, to) {
			limit = high
		}
		low := w.bounded(from, length, limit)
		if low == "0" {
			low = ""
		}
		return operand{text: o.in(highest) + "[" + low + ":" + high + "]", prec: highest}
	}
	return t
}

func (c *compiler) sliceBound(n ast.Node) (t *term, ok bool) {
	if n == nil {
		return nil, true
	}
	if t = c.valueOf(n); t == nil {
		return nil, false
	}
	if isAny(t.typ) {
		return t, true
	}
	if !isInt(t.typ) {
		return c.errorf(start(n), "a bound must be an integer; this is %s", c.a(t.typ)), false
	}
	return t.whole(), true
}

func (c *compiler) dynamicBound(n ast.Node) bool { return n != nil && isAny(c.seen[n].typ) }

// bounded writes a bound between 0 and limit; one below 0 counts from length.
func (w *writer) bounded(t *term, length, limit string) string {
	if t == nil {
		return ""
	}
	o := t.emit(w)
	if i, ok := t.con.(int); ok {
		switch {
		case i == 0:
			return "0"
		case i > 0:
			return "min(" + o.text + ", " + limit + ")"
		case limit == length:
			return "max(" + length + o.text + ", 0)"
		}
		return "min(max(" + length + o.text + ", 0), " + limit + ")"
	}
	at := w.define("i", o).text
	w.add("if " + at + " < 0 {" + indented([]string{at + " += " + length}) + "}")
	w.add(at + " = min(max(" + at + ", 0), " + limit + ")")
	return at
}

// below reports whether constants show that the lower bound does not pass the upper one.
func below(from, to *term) bool {
	if from == nil {
		return true
	}
	a, ok := from.con.(int)
	b, fixed := to.con.(int)
	return ok && (a == 0 || fixed && a <= b && (a > 0) == (b > 0))
}
