package expr

import (
	"go/token"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// onTime writes a call of a method of l, a time, with r.
func onTime(n ast.Node, result types.Type, method string, l, r *term) *term {
	return &term{node: n, typ: result, hint: "at", emit: func(w *writer) operand {
		o := w.all(l, r)
		return operand{text: o[0].in(highest) + "." + method + "(" + o[1].text + ")", prec: highest, calls: true}
	}}
}

// ordered lowers < and its like between times.
func ordered(n *ast.BinaryNode, l, r *term) *term {
	switch n.Operator {
	case "<":
		return onTime(n, truth, "Before", l, r)
	case ">":
		return onTime(n, truth, "After", l, r)
	}
	// Neither is before the other where they are the same, so that <= is "not after".
	method := map[string]string{"<=": "After", ">=": "Before"}[n.Operator]
	return negated(n, onTime(n, truth, method, l, r))
}

func negated(n ast.Node, t *term) *term {
	return &term{node: n, typ: truth, hint: "ok", emit: func(w *writer) operand {
		o := t.emit(w)
		return operand{text: "!" + o.in(unary), prec: unary, calls: o.calls}
	}}
}

// sameTime lowers == and != between times: they are the same moment, in whatever zone.
func (c *compiler) sameTime(n *ast.BinaryNode, l, r *term) *term {
	if l.try != nil || r.try != nil {
		return c.onMachine(n, truth)
	}
	t := onTime(n, truth, "Equal", l, r)
	if comparisons[n.Operator] == token.NEQ {
		return negated(n, t)
	}
	return t
}

// moments lowers a difference of times, and a time moved by a duration.
func (c *compiler) moments(n *ast.BinaryNode, l, r *term) *term {
	switch {
	case n.Operator == "-" && isTime(l.typ) && isTime(r.typ):
		return onTime(n, c.stdType("time", "Duration"), "Sub", l, r)
	case n.Operator == "+" && isTime(l.typ) && isDuration(r.typ):
		return onTime(n, l.typ, "Add", l, r)
	case n.Operator == "+" && isDuration(l.typ) && isTime(r.typ):
		return onTime(n, r.typ, "Add", r, l)
	case n.Operator == "-" && isTime(l.typ) && isDuration(r.typ):
		return onTime(n, l.typ, "Add", l, opposite(r.node, r))
	}
	return c.mixed(n, l, r)
}
