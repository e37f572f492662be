package expr

import (
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// in lowers x in y, where y is a list, a range, a map or a struct. An absent value is in none of them.
func (c *compiler) in(n *ast.BinaryNode) *term {
	x := c.valueOf(n.Left)
	if isEnv(n.Right) {
		return c.inEnv(n, x)
	}
	if list, ok := n.Right.(*ast.ArrayNode); ok && x != nil && !x.absent {
		return c.inList(n, x, list)
	}
	y := c.term(n.Right)
	if x == nil || y == nil {
		return nil
	}
	if x.absent || y.absent {
		return c.unequal(n, x, y)
	}
	a := aggregate(y.typ)
	m, isMap := a.(*types.Map)
	_, isStruct := a.(*types.Struct)
	elem := elemOf(y.typ)
	switch {
	case isAny(x.typ) || isAny(y.typ):
	case isMap && c.assign(x, m.Key(), "the operand before in") == nil:
		return nil
	case elem != nil && !isAny(elem) && !comparable(x.typ, elem):
		return c.errorf(n, "%s is never in %s", c.a(x.typ), c.a(y.typ))
	case isStruct && !isText(x.typ):
		return c.errorf(start(n.Left), "the name of a field is a string; this is %s", c.a(x.typ))
	case !isMap && !isStruct && elem == nil:
		return c.errorf(n, "in needs a slice, an array, a map or a struct after it; this is %s", c.a(y.typ))
	}
	return c.onMachine(n, truth)
}

// inList lowers x in [a, b] to comparisons with each element.
func (c *compiler) inList(n *ast.BinaryNode, x *term, list *ast.ArrayNode) *term {
	items, ok := c.terms(list.Nodes)
	if len(items) == 0 {
		return c.errorf(list, "the list is empty, so it contains nothing")
	}
	if !ok {
		return nil
	}
	for i, item := range items {
		v := item.value()
		l, r := alike(x, v)
		switch {
		case !comparable(x.typ, v.typ) && !comparable(x.typ, item.typ):
			return c.errorf(start(item.node), "%s is never equal to %s", c.a(x.typ), c.a(item.typ))
		case l == nil || mayBeNil(x, v) || item.unchecked != nil,
			i > 0 && !types.Identical(l.typ, x.typ) || !r.lit && !types.Identical(l.typ, r.typ):
			return c.onMachine(n, truth)
		}
		x, items[i] = l, r
	}
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		var elements []string
		for _, item := range items {
			elements = append(elements, w.term(item).text)
		}
		return w.callOf(w.std("slices", "Contains"), w.composite(types.NewSlice(x.typ), elements), w.term(x))
	}}
}
