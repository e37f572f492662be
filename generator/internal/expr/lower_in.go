package expr

import (
	"go/token"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// in lowers x in y; what may be absent is in nothing then.
func (c *compiler) in(n *ast.BinaryNode) *term {
	x := c.valueOf(n.Left)
	if x != nil && x.gone && !isEnv(n.Right) {
		y := c.term(n.Right)
		if y == nil {
			return nil
		}
		return c.unequal(n, false, x, y)
	}
	t := c.among(n, x)
	if t == nil || x.try == nil || x.bare != nil {
		return t
	}
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		return w.guarded(false, x, func(w *writer, o operand) operand { return t.written(w, x, o) })
	}}
}

// among lowers a search for x in a list spelled out, a range, a slice, an array, a map or a struct.
func (c *compiler) among(n *ast.BinaryNode, x *term) *term {
	switch r := n.Right.(type) {
	case *ast.ArrayNode:
		return c.inList(n, x, r)
	case *ast.BinaryNode:
		if r.Operator == ".." {
			return c.inRange(n, x, r)
		}
	}
	if isEnv(n.Right) {
		return c.inEnv(n, x)
	}
	y := c.term(n.Right)
	if x == nil || y == nil {
		return nil
	}
	if y.gone {
		return c.unequal(n, false, x, y)
	}
	if isAny(x.typ) || isAny(y.typ) {
		return c.onMachine(n, truth)
	}
	switch a := aggregate(y.typ).(type) {
	case *types.Map:
		return c.inMap(n, x, y, a)
	case *types.Slice:
		return c.inSlice(n, x, y, a.Elem())
	case *types.Array:
		return c.inSlice(n, x, y, a.Elem())
	}
	if _, ok := aggregate(y.typ).(*types.Struct); ok {
		return c.inStruct(n, x, y)
	}
	return c.errorf(n, "in needs a slice, an array, a map or a struct behind it; this is %s", c.a(y.typ))
}

// inStruct lowers a search for a field. As in expr it is found by its name in Go, if it is exported and no tag hides it, and
// there is none in a nil pointer. What depends on more than that is left to the machine.
func (c *compiler) inStruct(n *ast.BinaryNode, x, y *term) *term {
	if !isText(x.typ) {
		return c.errorf(start(n.Left), "a field's name is a text; this is %s", c.a(x.typ))
	}
	name, constant := x.con.(string)
	of := concrete(y.typ)
	field, path, _ := types.LookupFieldOrMethod(of, true, c.env.Package, name)
	if !constant || field == nil && path != nil || len(path) > 1 {
		return c.onMachine(n, truth)
	}
	found := false
	if _, ok := field.(*types.Var); ok {
		found = seenByExpr(of, field, path)
	}
	id, ok := n.Right.(*ast.IdentifierNode)
	switch {
	case found && (y.try != nil || nilable(y.typ)):
		there := *n
		there.Operator = "!="
		return c.equalNil(&there, y)
	case ok && c.env.declares(id.Value):
		return literal(n, found)
	}
	return c.onMachine(n, truth) // to compute y may fail
}

// inList compares x with one value after the other.
func (c *compiler) inList(n *ast.BinaryNode, x *term, list *ast.ArrayNode) *term {
	items, ok := c.terms(list.Nodes)
	if len(items) == 0 {
		return c.errorf(list, "nothing is in an empty list")
	}
	if x == nil || !ok {
		return nil
	}
	pairs := make([][2]*term, len(items))
	for i, item := range items {
		l, r, ok := alike(x, item.value(), false)
		if isAny(x.typ) || isAny(item.typ) || item.value().try != nil || !ok && c.comparable(x.typ, item.typ) {
			return c.onMachine(n, truth)
		}
		if !ok {
			return c.errorf(start(item.node), "%s is never equal to %s", c.a(x.typ), c.a(item.typ))
		}
		pairs[i] = [2]*term{l, r}
	}
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		ops := w.all(append([]*term{x}, items...)...)
		left := w.twice(x.hint, ops[0])
		var all operand
		for i, p := range pairs {
			cmp := join(token.EQL, p[0].written(w, x, left), p[1].written(w, items[i], ops[i+1]))
			if i == 0 {
				all = cmp
			} else {
				all = join(token.LOR, all, cmp)
			}
		}
		return all
	}}
}

// written is t, a conversion of from, applied to what from was written as.
func (t *term) written(w *writer, from *term, o operand) operand {
	once := w.once[from]
	emit := from.emit
	from.emit = func(*writer) operand { return o }
	defer func() { from.emit, w.once[from] = emit, once }()
	return t.emit(w)
}

// inRange lowers x in a..b.
func (c *compiler) inRange(n *ast.BinaryNode, x *term, r *ast.BinaryNode) *term {
	low, high := c.valueOf(r.Left), c.valueOf(r.Right)
	if x == nil || low == nil || high == nil {
		return nil
	}
	for _, t := range []*term{x, low, high} {
		if isAny(t.typ) {
			return c.onMachine(n, truth)
		}
		if !isInt(t.typ) {
			return c.errorf(start(t.node), "a range has integers; this is %s", c.a(t.typ))
		}
	}
	x, low, high = x.asInt(), low.whole(), high.whole()
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		ops := w.all(x, low, high)
		v := w.twice(x.hint, ops[0])
		return join(token.LAND, join(token.GEQ, v, ops[1]), join(token.LEQ, v, ops[2]))
	}}
}

func (c *compiler) inMap(n *ast.BinaryNode, x, y *term, m *types.Map) *term {
	x = c.assign(x, m.Key(), "what is looked for")
	if x == nil {
		return nil
	}
	if unhashable(x.typ) {
		return c.onMachine(n, truth)
	}
	return &term{node: n, typ: truth, hint: "ok", emit: func(w *writer) operand {
		o := w.then([]operand{x.emit(w)}, func(w *writer) operand { return w.pointed(y, false) })
		ok := w.local("ok")
		w.add("_, " + ok + " := " + o[1].in(highest) + "[" + o[0].text + "]")
		return variable(ok)
	}}
}

func (c *compiler) inSlice(n *ast.BinaryNode, x, y *term, elem types.Type) *term {
	item := &term{typ: elem}
	l, r, ok := alike(x, item, false)
	if isAny(elem) || !ok && c.comparable(x.typ, elem) {
		return c.onMachine(n, truth)
	}
	if !ok {
		return c.errorf(n, "%s is never in %s", c.a(x.typ), c.a(y.typ))
	}
	_, slice := under(y.typ).(*types.Slice)
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		o := w.then([]operand{l.emit(w)}, func(w *writer) operand {
			o := w.pointed(y, false)
			if !slice && !o.addr {
				o = w.define("list", o)
			}
			return o
		})
		all := o[1].text
		if !slice {
			all = o[1].in(highest) + "[:]"
		}
		if r == item {
			return w.callOf(w.std("slices", "Contains"), []operand{{text: all, calls: o[1].calls}, o[0]})
		}
		v := w.twice(x.hint, o[0])
		each := w.local("v")
		same := join(token.EQL, r.written(w, item, variable(each)), v)
		return w.callOf(w.std("slices", "ContainsFunc"), []operand{
			{text: all, calls: o[1].calls},
			{text: "func(" + each + " " + w.typ(elem) + ") bool { return " + same.text + " }"},
		})
	}}
}
