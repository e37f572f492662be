package expr

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// closure is an expression that is computed for each element of a list. It becomes a func literal.
type closure struct {
	node   ast.Node
	params []parameterOf
}

// parameterOf is a parameter of a closure. It has no name if the body does not use it.
type parameterOf struct {
	hint string // the name that the func literal gives it if it is free
	typ  types.Type
	used bool
	name string // in the text that is being written
}

// newClosure returns a closure with parameters of these types.
func newClosure(n ast.Node, params ...types.Type) *closure {
	f := &closure{node: n}
	for i, t := range params {
		hint := "each"
		if len(params) > 1 {
			hint = string(rune('a' + i))
		}
		f.params = append(f.params, parameterOf{hint: hint, typ: t})
	}
	return f
}

// param returns a parameter as a term.
func (f *closure) param(i int) *term {
	f.params[i].used = true
	return &term{node: &ast.PointerNode{}, typ: f.params[i].typ, write: func(*writer) operand { return variable(f.params[i].name) }}
}

// literal writes a closure with its body:
//
//	func(each string) bool { return each == phone }
func (c *compiler) literal(f *closure, body *term) *term {
	if body == nil || !c.canName(f.node, body.typ) || slices.ContainsFunc(f.params, func(p parameterOf) bool { return !c.canName(f.node, p.typ) }) {
		return nil
	}
	return &term{node: f.node, typ: types.NewSignatureType(nil, nil, nil, nil, nil, false), write: func(w *writer) operand {
		var params []string
		for i := range f.params {
			p := &f.params[i]
			if p.name = "_"; p.used {
				p.name = w.names.Local(p.hint)
			}
			params = append(params, p.name+" "+w.typ(p.typ))
		}
		stmts := w.returned(body)
		if strings.Contains(stmts, "\n") {
			stmts = "\n" + stmts + "\n"
		} else {
			stmts = " " + stmts + " "
		}
		return primary("func(" + strings.Join(params, ", ") + ") " + w.typ(body.typ) + " {" + stmts + "}")
	}}
}

// body lowers the expression that a function computes for each element of its first argument.
func (c *compiler) body(n *ast.BuiltinNode, body *ast.PredicateNode, args []*term) *term {
	item := elemOf(args[0].typ)
	if item == nil {
		return c.errorf(start(args[0].node), "%s cannot be used with %s", n.Name, c.a(args[0].typ))
	}
	each := parameterOf{hint: "each", typ: item}
	index := parameterOf{hint: "i", typ: whole}
	f := &closure{node: n, params: []parameterOf{each}}
	switch n.Name {
	case "map":
		f.params = []parameterOf{index, each}
	case "reduce":
		return c.step(n, body, args, index, each)
	}
	return c.bodyOf(f, n, body)
}

// bodyOf lowers the body of a closure.
func (c *compiler) bodyOf(f *closure, n *ast.BuiltinNode, body *ast.PredicateNode) *term {
	c.closures = append(c.closures, f)
	c.loops++
	t := c.term(body.Node)
	c.loops--
	c.closures = c.closures[:len(c.closures)-1]
	switch {
	case t == nil:
		return nil
	case isNil(t.typ):
		return c.errorf(start(body.Node), "nil has no type here")
	case n.Name == "map" || n.Name == "reduce":
		t = c.nullable(t)
	default:
		t = t.value().plainly()
	}
	if t == nil {
		return nil
	}
	return &term{node: body.Node, typ: t.typ, closure: f, body: t}
}

// step lowers the body of reduce. The type of #acc is that of the first value, unless the step gives numbers of another type.
func (c *compiler) step(n *ast.BuiltinNode, body *ast.PredicateNode, args []*term, index, each parameterOf) *term {
	acc := each.typ
	if len(args) > 2 {
		if args[2] == nil {
			return nil
		}
		acc = args[2].typ
	}
	for range 3 { // int, int64, float64
		f := &closure{node: n, params: []parameterOf{{hint: "acc", typ: acc}, index, each}}
		t := c.bodyOf(f, n, body)
		if t == nil || types.Identical(t.typ, acc) {
			return t
		}
		before := acc
		if len(args) < 3 {
			return c.errorf(start(body.Node), "the result of this is %s, and the elements are %s; write a first value: reduce(..., 0)", c.a(t.typ), c.typeName(acc))
		}
		if acc = kindOf([]*term{{typ: before}, t}); acc == nil {
			return c.errorf(start(body.Node), "reduce needs a value of one type here; this is %s, and #acc is %s", c.a(t.typ), c.a(before))
		}
		if types.Identical(acc, before) {
			t.body, t.typ = t.body.to(acc), acc
			return t
		}
	}
	return nil
}

// pointer lowers #, #index or #acc.
func (c *compiler) pointer(n *ast.PointerNode) *term {
	f := c.closures[len(c.closures)-1]
	hint := map[string]string{"": "each", "index": "i", "acc": "acc"}[n.Name]
	for i, p := range f.params {
		if p.hint == hint {
			t := f.param(i)
			t.node = n
			return t
		}
	}
	return c.errorf(n, "there is no #%s here", n.Name)
}

// sortTimes lowers sort of a list of times:
//
//	wrap.Must(wrap.SortByTime(times, func(each time.Time) time.Time { return each }, "asc"))
func (c *compiler) sortTimes(n ast.Node, args []*term) *term {
	order := literal(n, "asc")
	if len(args) > 1 {
		order = args[1].as(types.String)
	}
	f := newClosure(n, elemOf(args[0].typ))
	key := c.literal(f, f.param(0))
	if key == nil {
		return nil
	}
	return must(goCall(n, types.NewSlice(elemOf(args[0].typ)), wrapPath, "SortByTime", c.list(args[0]), key, order))
}

// flatten lowers flatten of lists of lists:
//
//	slices.Concat(grid...)
func (c *compiler) flatten(n ast.Node, lists *term) *term {
	t := c.list(lists)
	for isList(elemOf(t.typ)) {
		inner := elemOf(t.typ)
		list := t
		if _, isArray := under(inner).(*types.Array); isArray {
			if list = c.listTo(t, types.NewSlice(elemOf(inner))); list == nil {
				return c.errorf(n, "flatten cannot be used with %s", c.a(t.typ))
			}
		}
		t = &term{node: n, typ: types.NewSlice(elemOf(inner)), write: func(w *writer) operand {
			return w.callOf(w.std("slices", "Concat"), operand{text: w.term(list).text + "...", prec: token.HighestPrec})
		}}
		t = c.read(t) // it may be much longer than the list of lists
	}
	if isAny(elemOf(t.typ)) {
		return c.dynamic(lists, nil)
	}
	return t
}
