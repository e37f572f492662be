package expr

import (
	"cmp"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// as returns t converted to a basic type. A literal needs no conversion, unless Go would infer the type rune.
func (t *term) as(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if types.Identical(t.typ, to) || t.fits(to) && !types.Identical(t.typ, types.Universe.Lookup("rune").Type()) {
		return t
	}
	return t.then(to, func(w *writer, o operand) operand { return w.conversion(to, o) })
}

// unnamed returns t, a number, without the name of its type, whose methods do not apply to the result of an operator. As with expr, a
// duration stays one.
func (t *term) unnamed() *term {
	if _, ok := types.Unalias(t.typ).(*types.Basic); ok || isDuration(t.typ) {
		return t
	}
	if b, ok := under(t.typ).(*types.Basic); ok {
		return t.as(b.Kind())
	}
	if !isInt(t.typ) { // a type parameter of integers and floats
		return t.as(types.Float64)
	}
	return t.integer(types.Int64)
}

// then returns a term of type to that writes f of the Go code of t.
func (t *term) then(to types.Type, f func(*writer, operand) operand) *term {
	return &term{node: t.node, typ: to, con: t.con, links: t.links, write: func(w *writer) operand { return f(w, w.term(t)) }}
}

// converted returns t in the Go type to: []string(names).
func (t *term) converted(to types.Type) *term {
	return t.then(to, func(w *writer, o operand) operand { return w.conversion(to, o) })
}

// integer returns t, an integer, converted to a basic type. If the value does not fit, the method returns a KeyError.
func (t *term) integer(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if t.fits(to) || holds(to, t.typ) {
		return t.as(kind)
	}
	return t.then(to, func(w *writer, o operand) operand {
		return w.must(w.callOf(w.std(wrapPath, "To")+"["+w.typ(to)+"]", o))
	})
}

// must returns a call whose error becomes a KeyError: wrap.Must(strconv.Atoi(id)).
func must(call *term) *term {
	return call.then(call.typ, func(w *writer, o operand) operand { return w.must(o) })
}

// operated is must for an operator or an index, whose operands are at fault in every argument: wrap.Must(wrap.At(parts, n)).
func operated(call *term) *term {
	return call.then(call.typ, func(w *writer, o operand) operand { return w.mustBy("Must", o) })
}

// value returns t as an operand. A pointer stands for its target unless that is a struct.
func (t *term) value() *term {
	if elem := pointee(t.typ); elem != nil && (!isStruct(elem) || isTime(elem)) {
		return t.target().value()
	}
	return t
}

// target returns what t, a pointer, points to.
func (t *term) target() *term {
	p := t.sole()
	return &term{node: t.node, typ: pointee(t.typ), links: t.parts(), pointer: t, write: func(w *writer) operand {
		o := w.term(p)
		w.fails = true
		return operand{text: "*" + o.in(unary), prec: unary, addr: true}
	}}
}

// sole returns t, a value of a type parameter, in the only type of its constraint, or in the type that its types have in common. It returns
// other values as they are.
func (t *term) sole() *term {
	set := typeSet(t.typ)
	if len(set) == 0 {
		return t
	}
	to := under(t.typ)
	if len(set) == 1 && types.Identical(set[0].Underlying(), to) {
		to = set[0]
	}
	switch to.(type) {
	case *types.Basic, *types.Interface:
		return t
	}
	return t.converted(to)
}

// list returns t, a slice or an array, as a slice whose elements are read.
func (c *compiler) list(t *term) *term { return c.read(sliced(t)) }

// sliced returns t, a slice or an array, as a slice.
func sliced(t *term) *term {
	t = t.sole()
	if _, ok := under(t.typ).(*types.Array); !ok {
		return t
	}
	return t.then(types.NewSlice(elemOf(t.typ)), func(w *writer, o operand) operand {
		if !o.addr {
			o = w.callOf(w.std(wrapPath, "Copy"), o)
		}
		return primary(o.in(highest) + "[:]")
	})
}

// said returns t for messages.
func (t *term) said() string {
	const most = 60
	if text := t.node.String(); len(text) <= most {
		return text
	}
	return "the value"
}

// source returns the name of the variable, field or function that n consists of, or "".
func source(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value
	case *ast.MemberNode:
		if name, ok := n.Property.(*ast.StringNode); ok {
			return name.Value
		}
	case *ast.CallNode:
		return strings.TrimPrefix(source(n.Callee), "Get")
	case *ast.ChainNode:
		return source(n.Node)
	case *ast.ConditionalNode:
		return cmp.Or(source(n.Exp1), source(n.Exp2))
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return cmp.Or(source(n.Left), source(n.Right))
		}
	}
	return ""
}

// assign converts t so that Go can assign it to a variable of type to. If that is impossible, it reports an error and returns nil.
// A number can be converted to a type that holds all its values.
func (c *compiler) assign(t *term, to types.Type, role string) *term {
	v := t.value()
	switch {
	case t.fits(to):
		return t
	case types.AssignableTo(t.typ, to) && (t.links == nil || !nilable(to)):
		return t
	case types.AssignableTo(t.typ, to): // a call gets nil if a part of t is nil
		return c.orNil(t.plainly(), to, t.links)
	case pointee(t.typ) != nil && types.AssignableTo(pointee(t.typ), to):
		return t.target()
	case types.AssignableTo(v.typ, to), v.fits(to):
		return v
	case isFloat(to) && isInt(v.typ), isInt(v.typ) && isInt(to) && (holds(to, v.typ) || types.Identical(to, whole)):
		if b, ok := types.Unalias(to).(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
			return v.integer(b.Kind())
		} else if ok {
			return v.as(b.Kind())
		}
	case isList(v.typ) && isList(to):
		if list := c.listTo(v, elemOf(to)); list != nil {
			return list
		}
	case isAny(v.typ):
		return c.dynamic(v, to)
	}
	if t.con != nil && t.lit && isInt(t.typ) && isInt(to) {
		return c.errorf(start(t.node), "%v does not fit %s", t.con, c.typeName(to))
	}
	return c.errorf(start(t.node), "%s is %s; expected %s", role, c.a(t.typ), c.typeName(to))
}

// listTo returns t, a list, with elements of another type, or nil if they cannot become that:
//
//	wrap.Map(roles, func(_ int, each Role) string { return string(each) })
func (c *compiler) listTo(t *term, elem types.Type) *term {
	if types.Identical(elemOf(t.typ), elem) {
		return c.list(t)
	}
	before := len(c.errs)
	convert := func(t *term) *term {
		if isAny(elem) {
			return t.retyped(elem)
		}
		if to := t.convertedTo(elem); to != nil {
			return to
		}
		return c.assign(t, elem, "an element")
	}
	if t.items != nil && c.env.CanName(elem) {
		met := each(t.items, convert)
		if !slices.Contains(met, nil) {
			return listOf(t.node, elem, met, t.items)
		}
	} else if c.env.CanName(elem) && c.env.CanName(elemOf(t.typ)) {
		f := newClosure(t.node, whole, elemOf(t.typ))
		if body := convert(f.param(1)); body != nil {
			return goCall(t.node, types.NewSlice(elem), wrapPath, "Map", c.list(t), c.literal(f, body))
		}
	}
	c.errs = c.errs[:before]
	return nil
}

// convertedTo returns t in the type of a list's element, with which Go can compare it as expr does, or nil.
func (t *term) convertedTo(elem types.Type) *term {
	switch {
	case types.Identical(t.typ, elem), t.fits(elem):
		return t
	case isText(t.typ) && isText(elem), isBool(t.typ) && isBool(elem), isInt(t.typ) && isInt(elem) && holds(elem, t.typ),
		isNumber(t.typ) && types.Identical(elem, types.Typ[types.Float64]):
		return t.converted(elem)
	}
	return nil
}

// meet returns the terms converted to one type, or nil after an error at n. The type is a pointer if one of them may be nil. Values of
// different kinds become values of type any.
func (c *compiler) meet(n ast.Node, terms []*term) []*term {
	known := slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return isNil(t.typ) })
	if len(known) == 0 {
		c.errorf(n, "nil has no type here")
		return nil
	}
	same := func(of []*term) bool {
		return !slices.ContainsFunc(of, func(t *term) bool { return !types.Identical(t.typ, of[0].typ) })
	}
	mayBeNil := len(known) < len(terms)
	if same(known) && (!mayBeNil || nilable(known[0].typ)) {
		return each(terms, func(t *term) *term { return t.retyped(known[0].typ) })
	}
	values := each(known, (*term).value)
	for _, v := range values {
		mayBeNil = mayBeNil || v.pointer != nil
	}
	to := kindOf(values)
	if same(values) {
		to = values[0].typ
	}
	if lists := c.lists(values); lists != nil && !mayBeNil {
		return lists
	}
	if to == nil || mayBeNil && nilable(to) {
		return each(terms, func(t *term) *term { return c.anyOf(t) })
	}
	met := each(terms, func(t *term) *term {
		switch v := t.value(); {
		case isNil(t.typ):
			return t.retyped(types.NewPointer(to))
		case !mayBeNil:
			return v.to(to)
		case v.pointer != nil && types.Identical(v.typ, to):
			return v.pointer
		case v.pointer != nil:
			return c.nullable(v.to(to))
		default:
			return boxed(v.to(to))
		}
	})
	if slices.Contains(met, nil) {
		return nil
	}
	return met
}

// lists returns lists with elements of one type, that of the first list that is no empty literal, or nil if a term is no such list.
func (c *compiler) lists(terms []*term) []*term {
	first := slices.IndexFunc(terms, func(t *term) bool { return !t.emptyList() })
	if first < 0 || !isList(terms[first].typ) {
		return nil
	}
	list := types.NewSlice(elemOf(terms[first].typ))
	all := each(terms, func(t *term) *term {
		if !isList(t.typ) || !t.emptyList() && !types.Identical(elemOf(t.typ), list.Elem()) {
			return nil
		}
		if t = c.listTo(t, list.Elem()); t != nil {
			return t.retyped(list)
		}
		return nil
	})
	if slices.Contains(all, nil) {
		return nil
	}
	return all
}

// emptyList reports whether t is the literal [].
func (t *term) emptyList() bool { return t.items != nil && len(t.items) == 0 }

// anyOf returns t as a value of type any, which is nil where t is nil.
func (c *compiler) anyOf(t *term) *term {
	if v := t.value(); v.pointer == nil {
		t = v
	}
	return t.retyped(anything)
}

// retyped returns t as a value of a type to which Go can assign it.
func (t *term) retyped(to types.Type) *term {
	if types.Identical(t.typ, to) {
		return t
	}
	v := *t
	v.typ = to
	return &v
}

// basic returns t, a text, a number or a bool, in a type without a name of its own.
func (t *term) basic() *term {
	switch {
	case t.lit:
		return t
	case isText(t.typ):
		return t.as(types.String)
	case isBool(t.typ):
		return t.as(types.Bool)
	case isInt(t.typ):
		return t.as(types.Int64)
	}
	return t.as(types.Float64)
}

// to returns t, a basic value, in another type.
func (t *term) to(typ types.Type) *term {
	b, ok := typ.(*types.Basic)
	switch {
	case types.Identical(t.typ, typ) || !ok:
		return t
	case t.lit && b.Info()&types.IsFloat != 0 && isInt(t.typ):
		return literal(t.node, float64(t.con.(int)))
	case b.Info()&types.IsInteger != 0:
		return t.integer(b.Kind()).retyped(typ)
	}
	return t.as(b.Kind()).retyped(typ)
}

// kindOf returns the basic type that has all values of the terms, or nil if there is none, or if one of them has methods that give its text.
func kindOf(terms []*term) types.Type {
	all := func(is func(types.Type) bool) bool {
		return !slices.ContainsFunc(terms, func(t *term) bool { return !is(t.typ) || hasMethods(t.typ) })
	}
	switch {
	case all(isInt):
		return types.Typ[arithmeticKind(terms...)]
	case all(isNumber):
		return types.Typ[types.Float64]
	case all(isText):
		return text
	case all(isBool):
		return truth
	}
	return nil
}

func (c *compiler) valueOf(n ast.Node) *term {
	if t := c.term(n); t != nil {
		return t.value()
	}
	return nil
}

// each returns the results of f for all terms.
func each(terms []*term, f func(*term) *term) []*term {
	all := make([]*term, len(terms))
	for i, t := range terms {
		all[i] = f(t)
	}
	return all
}
