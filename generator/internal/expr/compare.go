package expr

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// alike returns l and r in a type in which Go compares them as expr does, or nil if there is none. It compares integers that are
// too large for an int64 by their bits.
func alike(l, r *term) (a, b *term) {
	both := func(is func(types.Type) bool) bool { return is(l.typ) && is(r.typ) }
	kind := types.Float64
	switch {
	case both(isText):
		kind = types.String
	case both(isBool):
		kind = types.Bool
	case both(isInt):
		kind = types.Int64
	case !both(isNumber):
		return nil, nil
	}
	if types.Identical(l.typ, r.typ) || kind != types.Float64 && (l.fits(r.typ) || r.fits(l.typ)) {
		return l, r
	}
	return l.as(kind), r.as(kind)
}

// comparable reports whether values of these types may be equal.
func comparable(a, b types.Type) bool {
	for _, is := range []func(types.Type) bool{isNumber, isText, isBool, isList, isAny, isNil} {
		if is(a) && is(b) || is(a) && isAny(b) || isAny(a) && is(b) {
			return true
		}
	}
	return types.AssignableTo(a, b) || types.AssignableTo(b, a) || isNil(a) && nilable(b) || nilable(a) && isNil(b)
}

// order lowers a comparison of numbers or of texts. It compares integers that are too large for an int64 by their values.
func (c *compiler) order(n ast.Node, sign token.Token, l, r *term) *term {
	if isInt(l.typ) && isInt(r.typ) && (wide(l.typ) || wide(r.typ)) && !types.Identical(l.typ, r.typ) && !l.fits(r.typ) && !r.fits(l.typ) {
		return infix(n, truth, sign, goCall(n, whole, wrapPath, "Compare", l, r), literal(n, 0))
	}
	a, b := alike(l, r)
	if a == nil { // a type parameter that Go can order
		a, b = l, r
	}
	return infix(n, truth, sign, c.compared(a, b), c.compared(b, a))
}

// compared returns an operand of a comparison. A loop counts the steps of comparing two texts, unless one is a constant.
func (c *compiler) compared(t, other *term) *term {
	if isText(t.typ) && other.con == nil {
		return c.read(t)
	}
	return t
}

// equal lowers == and !=. A value that is absent equals nil only.
func (c *compiler) equal(n ast.Node, sign token.Token, l, r *term) *term {
	if isNil(r.typ) {
		return c.equalNil(n, sign, l)
	}
	if isNil(l.typ) {
		return c.equalNil(n, sign, r)
	}
	if isError(l.typ) && isError(r.typ) {
		return c.is(n, sign, l, r)
	}
	l, r = l.carried().value(), r.carried().value()
	if v, done := c.fold(n, sign.String(), l, r); done {
		return v
	}
	if l.links != nil && r.links != nil {
		return c.equalPointers(n, sign, l, r)
	}
	same := signed(sign, c.same(n, l.plainly(), r.plainly()))
	if same == nil {
		return nil
	}
	return c.guarded(n, same, sign == token.NEQ, slices.Concat(l.links, r.links)...)
}

// same lowers the comparison of two values of which none may be nil.
func (c *compiler) same(n ast.Node, l, r *term) *term {
	if a, b := alike(l, r); a != nil {
		return infix(n, truth, token.EQL, c.compared(a, b), c.compared(b, a))
	}
	identical := types.Identical(l.typ, r.typ)
	switch {
	case isAny(l.typ) && isBasic(r.typ):
		return goCall(n, truth, wrapPath, "Equal", l, r.basic())
	case isAny(r.typ) && isBasic(l.typ):
		return goCall(n, truth, wrapPath, "Equal", r, l.basic())
	case isTime(l.typ) && isTime(r.typ):
		return &term{node: n, typ: truth, write: func(w *writer) operand {
			return w.callOf(w.term(l).in(highest)+".Equal", w.term(r))
		}}
	case isList(l.typ) && isList(r.typ) && !isAny(elemOf(l.typ)):
		return c.sameLists(n, l, r)
	case isMap(l.typ) && isMap(r.typ):
		return c.sameMaps(n, l, r)
	case identical && pointee(l.typ) != nil && types.Comparable(pointee(l.typ)):
		return goCall(n, truth, wrapPath, "SameTarget", l, r)
	case identical && types.Comparable(l.typ) && pointee(l.typ) == nil,
		types.IsInterface(l.typ) && types.AssignableTo(r.typ, l.typ), types.IsInterface(r.typ) && types.AssignableTo(l.typ, r.typ):
		if !isAny(l.typ) && !isAny(r.typ) || identical && isTypeParam(l.typ) && types.Comparable(l.typ) {
			return infix(n, truth, token.EQL, l, r)
		}
	}
	if isAny(l.typ) {
		return c.dynamic(l, nil)
	}
	if isAny(r.typ) {
		return c.dynamic(r, nil)
	}
	if identical {
		return c.errorf(n, "Go cannot compare values of type %s; %s", c.typeName(cmp.Or(pointee(l.typ), l.typ)), c.inFunction(n))
	}
	return c.mixed(n, l, r)
}

// signed returns same for ==, and the opposite for !=. It returns nil if same is nil.
func signed(sign token.Token, same *term) *term {
	switch {
	case same == nil || sign == token.EQL:
		return same
	case same.op == token.EQL:
		return infix(same.node, truth, token.NEQ, same.operands...)
	}
	return inverse(same.node, same)
}

// sameLists lowers the comparison of two lists, element by element:
//
//	slices.Equal(tags, []string{"a", "b"})
func (c *compiler) sameLists(n ast.Node, l, r *term) *term {
	x, y := c.list(l), c.list(r)
	if types.Identical(elemOf(l.typ), elemOf(r.typ)) && isBasic(elemOf(l.typ)) {
		return goCall(n, truth, "slices", "Equal", x, y)
	}
	each := c.pairwise(n, elemOf(l.typ), elemOf(r.typ))
	if each == nil {
		return nil
	}
	return goCall(n, truth, "slices", "EqualFunc", x, y, each)
}

// sameMaps lowers the comparison of two maps:
//
//	maps.Equal(labels, map[string]string{"a": "b"})
func (c *compiler) sameMaps(n ast.Node, l, r *term) *term {
	x, y := under(l.typ).(*types.Map), under(r.typ).(*types.Map)
	switch {
	case !types.Identical(x.Key(), y.Key()):
		return c.mixed(n, l, r)
	case types.Identical(x.Elem(), y.Elem()) && isBasic(x.Elem()):
		return goCall(n, truth, "maps", "Equal", c.read(l.sole()), c.read(r.sole()))
	}
	each := c.pairwise(n, x.Elem(), y.Elem())
	if each == nil {
		return nil
	}
	return goCall(n, truth, "maps", "EqualFunc", c.read(l.sole()), c.read(r.sole()), each)
}

// pairwise returns a func literal that compares elements of two types:
//
//	func(a, b *docs.Document) bool { return wrap.SameTarget(a, b) }
func (c *compiler) pairwise(n ast.Node, x, y types.Type) *term {
	f := newClosure(n, x, y)
	return c.literal(f, c.equal(n, token.EQL, f.param(0), f.param(1)))
}

// equalPointers lowers == and != of two values that may both be nil.
func (c *compiler) equalPointers(n ast.Node, sign token.Token, l, r *term) *term {
	if isAny(l.typ) || isAny(r.typ) {
		return c.dynamic(l, nil)
	}
	if a, b := alike(l, r); a != nil {
		l, r = a, b
	}
	x, y := c.nullable(l), c.nullable(r)
	if x == nil || y == nil {
		return nil
	}
	switch {
	case nilable(l.typ) && nilable(r.typ):
		return signed(sign, c.same(n, x, y))
	case types.Identical(x.typ, y.typ) && types.Comparable(pointee(x.typ)):
		return signed(sign, goCall(n, truth, wrapPath, "SameTarget", x, y))
	}
	return c.mixed(n, l, r)
}

// equalNil lowers a comparison with nil.
func (c *compiler) equalNil(n ast.Node, sign token.Token, t *term) *term {
	switch {
	case isNil(t.typ):
		return literal(n, sign == token.EQL)
	case t.parts() == nil:
		return c.errorf(n, "%s is never nil: it is %s", t.said(), c.a(t.typ))
	}
	all := t.parts()
	last := len(all) - 1
	return c.guarded(n, isAbsent(n, sign, all[last]), sign == token.EQL, all[:last]...)
}

// is lowers == and != of two errors. The second argument of errors.Is is a variable of a package, if one of the operands is:
//
//	errors.Is(err, sql.ErrNoRows)
func (c *compiler) is(n ast.Node, sign token.Token, l, r *term) *term {
	if l.global && !r.global {
		l, r = r, l
	}
	x, y := c.nullable(l), c.nullable(r)
	if x == nil || y == nil {
		return nil
	}
	return signed(sign, goCall(n, truth, "errors", "Is", x, y))
}

// isError reports whether values of type t are errors.
func isError(t types.Type) bool { return types.Implements(t, failure.Underlying().(*types.Interface)) }

// in lowers x in y, where y is a list, a range, a map or a struct. An absent value is in none of them.
func (c *compiler) in(n *ast.BinaryNode) *term {
	x := c.term(n.Left)
	if list, ok := n.Right.(*ast.ArrayNode); ok && x != nil {
		return c.inList(n, x, list)
	}
	if bounds, ok := n.Right.(*ast.BinaryNode); ok && bounds.Operator == ".." && x != nil {
		return c.inRange(n, x.value(), bounds)
	}
	y := c.valueOf(n.Right)
	if x == nil || y == nil {
		return nil
	}
	parts := y.parts()
	if isNil(x.typ) {
		return c.errorf(start(n.Left), "nil in a list that is no literal cannot be used; %s", c.inFunction(n))
	}
	x = x.carried().value()
	found := c.within(n, x.plainly(), y.plainly())
	if found == nil {
		return nil
	}
	if isList(y.typ) || isMap(y.typ) { // a nil one has no elements
		parts = y.links
	}
	return c.guarded(n, found, false, slices.Concat(x.links, parts)...)
}

// within lowers x in y if neither is nil.
func (c *compiler) within(n *ast.BinaryNode, x, y *term) *term {
	switch of := aggregate(y.typ).(type) {
	case *types.Map:
		if x = c.assign(x, of.Key(), "the operand before in"); x == nil {
			return nil
		}
		return goCall(n, truth, wrapPath, "Has", y.sole(), c.compared(x, y))
	case *types.Struct:
		return c.hasField(n, x, y)
	case *types.Slice, *types.Array:
		return c.inElements(n, x, y)
	}
	if isAny(y.typ) {
		return c.dynamic(y, nil)
	}
	return c.errorf(n, "in needs a slice, an array, a map or a struct after it; this is %s", c.a(y.typ))
}

// inElements lowers x in a list.
func (c *compiler) inElements(n *ast.BinaryNode, x, list *term) *term {
	elem := elemOf(list.typ)
	if !comparable(x.typ, (&term{typ: elem}).value().typ) {
		return c.errorf(n, "%s is never in %s", c.a(x.typ), c.a(list.typ))
	}
	if f := x.convertedTo(elem); f != nil && isBasic(elem) && (f == x || c.env.CanName(elem)) {
		return goCall(n, truth, "slices", "Contains", c.list(list), f)
	}
	f := newClosure(n, elem)
	v, bind := once(x)
	each := c.literal(f, c.equal(n, token.EQL, f.param(0), v))
	if each == nil {
		return nil
	}
	return bind(goCall(n, truth, "slices", "ContainsFunc", c.list(list), each))
}

// hasField lowers x in a struct: whether it has the field:
//
//	slices.Contains([]string{"Title", "Size"}, name)
func (c *compiler) hasField(n *ast.BinaryNode, x, y *term) *term {
	if !isText(x.typ) {
		return c.errorf(start(n.Left), "the name of a field is a string; this is %s", c.a(x.typ))
	}
	of := y.sole().typ
	var names []*term
	for _, name := range c.members(of) {
		obj, _, _ := types.LookupFieldOrMethod(of, true, c.env.Package, name)
		if _, isField := obj.(*types.Var); isField && obj.Exported() {
			if x.con == name {
				return literal(n, true)
			}
			names = append(names, literal(n, name))
		}
	}
	if x.con != nil {
		return literal(n, false)
	}
	return goCall(n, truth, "slices", "Contains", listOf(n, text, names, names), x.as(types.String))
}

// inRange lowers x in first..last:
//
//	1 <= n && n <= 5
func (c *compiler) inRange(n *ast.BinaryNode, x *term, bounds *ast.BinaryNode) *term {
	first, last := c.valueOf(bounds.Left), c.valueOf(bounds.Right)
	switch {
	case first == nil || last == nil:
		return nil
	case !isInt(first.typ) || !isInt(last.typ):
		return c.mixed(bounds, first, last)
	case !isInt(x.typ):
		return c.errorf(start(n.Left), "a range has integers; this is %s", c.a(x.typ))
	}
	v, bind := once(x.plainly())
	low, high := c.order(n, token.LEQ, first, v), c.order(n, token.LEQ, v, last)
	return c.guarded(n, bind(infix(n, truth, token.LAND, low, high)), false, x.links...)
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
	if t := c.containedIn(n, x, items); t != nil {
		return t
	}
	v, bind := once(c.nullable(x))
	var any *term
	for _, item := range items {
		if !comparable(x.value().typ, item.value().typ) && !comparable(x.typ, item.typ) {
			return c.errorf(start(item.node), "%s is never equal to %s", c.a(x.typ), c.a(item.typ))
		}
		same := c.equal(n, token.EQL, v, item)
		if same == nil {
			return nil
		}
		if any == nil {
			any = same
		} else {
			any = infix(n, truth, token.LOR, any, same)
		}
	}
	return bind(any)
}

// containedIn lowers x in [a, b] if x and the elements are basic values that are never nil:
//
//	slices.Contains([]string{phone, "x"}, name)
func (c *compiler) containedIn(n *ast.BinaryNode, x *term, items []*term) *term {
	x, all := x.carried().value(), slices.Clone(items)
	for i, item := range all {
		l, r := alike(x, item.value())
		if l == nil || x.parts() != nil || item.value().parts() != nil || i > 0 && !types.Identical(l.typ, x.typ) ||
			!r.lit && !types.Identical(l.typ, r.typ) {
			return nil
		}
		x, all[i] = l, r
	}
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		return w.callOf(w.std("slices", "Contains"), w.composite(types.NewSlice(x.typ), texts(w.all(all...))), w.term(x))
	}}
}
