package expr

import (
	"go/types"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// closure is what # stands for in the second argument of filter and its like.
type closure struct {
	item types.Type
	acc  types.Type // nil but in reduce
	at   bool       // whether there is an #index
}

// predicate says what a function does whose second argument is computed for each element of the first.
type predicate struct {
	test   bool // the second argument is true or false
	number bool // it is a number
	at     bool // it may ask for #index
	result func(list, each types.Type) types.Type
}

func always(t types.Type) func(_, _ types.Type) types.Type {
	return func(_, _ types.Type) types.Type { return t }
}

func theList(list, _ types.Type) types.Type { return sliceOf(list) }
func anItem(list, _ types.Type) types.Type  { return itemOf(list) }

var predicates = map[string]predicate{
	"all":           {test: true, result: always(truth)},
	"any":           {test: true, result: always(truth)},
	"none":          {test: true, result: always(truth)},
	"one":           {test: true, result: always(truth)},
	"filter":        {test: true, result: theList},
	"find":          {test: true, result: anItem},
	"findLast":      {test: true, result: anItem},
	"findIndex":     {test: true, result: always(whole)},
	"findLastIndex": {test: true, result: always(whole)},
	"count":         {test: true, result: always(whole)},
	"sum":           {number: true, result: func(_, each types.Type) types.Type { return total(each) }},
	"sortBy":        {result: theList},
	"map":           {at: true, result: func(_, each types.Type) types.Type { return types.NewSlice(each) }},
	"groupBy":       {result: func(list, each types.Type) types.Type { return types.NewMap(anything, sliceOf(list)) }},
	"reduce":        {at: true, result: func(_, each types.Type) types.Type { return each }},
}

// predicate checks a call of one of them.
func (c *compiler) predicate(n *ast.BuiltinNode, p predicate) *term {
	list := c.list(n)
	if list == nil {
		return nil
	}
	each := itemOf(list)
	if len(n.Arguments) > 1 {
		if each = c.body(n, p, list); each == nil {
			return nil
		}
	}
	if p.test && len(n.Arguments) > 1 && !isBool(each) && !isAny(each) {
		return c.errorf(start(n.Arguments[1].(*ast.PredicateNode).Node), "%s needs a bool here; this is %s", n.Name, c.a(each))
	}
	if p.number && !isNumber(each) && !isAny(each) {
		return c.errorf(start(n.Arguments[0]), "%s needs numbers; there is %s", n.Name, c.a(each))
	}
	if n.Name == "sortBy" && len(n.Arguments) == 3 {
		if order := c.term(n.Arguments[2]); order == nil || !isText(order.typ) && !isAny(order.typ) {
			return c.errorf(start(n.Arguments[2]), `sortBy takes "asc" or "desc" here`)
		}
	}
	t := c.onMachine(n, p.result(list, each))
	if strings.HasPrefix(n.Name, "find") {
		t.mayBeNil()
	}
	return t
}

// list is the type of the first argument, or nil after an error.
func (c *compiler) list(n *ast.BuiltinNode) types.Type {
	t := c.term(n.Arguments[0])
	if t == nil {
		return nil
	}
	if !isList(t.typ) && !isAny(t.typ) {
		c.errorf(start(n.Arguments[0]), "%s needs a slice or an array; this is %s", n.Name, c.a(t.typ))
		return nil
	}
	return t.typ
}

// body returns the type of the second argument, nil after an error.
func (c *compiler) body(n *ast.BuiltinNode, p predicate, list types.Type) types.Type {
	scope := closure{item: itemOf(list), at: p.at}
	if n.Name == "reduce" {
		scope.acc = anything
		if len(n.Arguments) == 3 && c.term(n.Arguments[2]) == nil {
			return nil
		}
	}
	c.closures = append(c.closures, scope)
	t := c.term(n.Arguments[1].(*ast.PredicateNode).Node)
	c.closures = c.closures[:len(c.closures)-1]
	switch {
	case t == nil:
		return nil
	case isNil(t.typ), t.optional() && !p.test && !p.number:
		return anything
	case p.test || p.number:
		return t.value().typ
	}
	return t.typ
}

// pointer is #, #index or #acc.
func (c *compiler) pointer(n *ast.PointerNode) *term {
	if len(c.closures) == 0 {
		return c.errorf(n, "unexpected #")
	}
	scope := c.closures[len(c.closures)-1]
	var t *term
	switch {
	case n.Name == "":
		t = c.onMachine(n, scope.item)
	case n.Name == "index" && scope.at:
		t = c.onMachine(n, whole)
	case n.Name == "acc" && scope.acc != nil:
		t = c.onMachine(n, scope.acc)
	default:
		return c.errorf(n, "there is no #%s here", n.Name)
	}
	t.src = "#" + n.Name
	return t
}

// itemOf is the type of what is in a list; any for what may be a list.
func itemOf(list types.Type) types.Type {
	if elem := elemOf(list); elem != nil {
		return elem
	}
	return anything
}

func sliceOf(list types.Type) types.Type { return types.NewSlice(itemOf(list)) }

// total is the type of a sum of numbers.
func total(t types.Type) types.Type {
	switch {
	case isInt(t):
		return whole
	case isNumber(t):
		return types.Typ[types.Float64]
	}
	return t
}
