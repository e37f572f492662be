package expr

import (
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// as is t converted by Go's own conversion to the basic type named.
func (t *term) as(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if types.Identical(t.typ, to) || t.fits(to) {
		return t
	}
	return t.then(to, func(_ *writer, o operand) operand { return o.from(to.Name() + "(" + o.text + ")") })
}

// then is t with f applied to what it is written as.
func (t *term) then(to types.Type, f func(*writer, operand) operand) *term {
	v := &term{node: t.node, typ: to, con: t.con, src: t.src, hint: t.hint}
	if isInt(t.typ) && isInt(to) && (!wide(t.typ) || wide(to)) {
		s := t.span()
		v.within = &s
	}
	v.emit = func(w *writer) operand { return f(w, t.emit(w)) }
	if t.try != nil {
		v.try = func(w *writer) operand { return f(w, t.try(w)) }
	}
	return v
}

func (t *term) asInt() *term   { return t.as(types.Int) }
func (t *term) asFloat() *term { return t.as(types.Float64) }
func (t *term) asText() *term  { return t.as(types.String) }
func (t *term) asBool() *term  { return t.as(types.Bool) }

// value is what operators take: a pointer stands for what it points to, unless that has parts of its own.
func (t *term) value() *term {
	elem := pointee(t.typ)
	if elem == nil || !isBasic(elem) {
		return t
	}
	v := &term{node: t.node, typ: elem, src: t.src, hint: t.hint, mixed: t.mixed}
	v.emit = func(w *writer) operand {
		return star(w.notNil(t.emit(w), t.typ, t.hint, t.said()))
	}
	v.try = func(w *writer) operand {
		o := w.twice(t.hint, t.attempt(w))
		w.leaveUnless(o, t.typ)
		return star(o)
	}
	return v
}

func star(o operand) operand {
	return operand{text: "*" + o.text, prec: unary, path: o.path, addr: true}
}

// attempt writes t where it may turn out to be absent.
func (t *term) attempt(w *writer) operand {
	if t.try != nil {
		return t.try(w)
	}
	return t.emit(w)
}

// said is what the expression calls t.
func (t *term) said() string {
	if t.src == "" || len(t.src) > 60 {
		return "the value"
	}
	return t.src
}

// assign converts t to what Go lets be assigned to a variable of type to, or returns nil after saying why it cannot.
// A number may become one of a type that holds all its values.
func (c *compiler) assign(t *term, to types.Type, role string) *term {
	v := t
	if elem := pointee(t.typ); elem != nil && !types.AssignableTo(t.typ, to) {
		v = c.pointed(t)
	}
	switch {
	case t.fits(to), types.AssignableTo(t.typ, to):
		return t
	case types.AssignableTo(v.typ, to), v.fits(to):
		return v
	case isNumber(v.typ) && is(to, types.IsFloat) && isInt(v.typ), isInt(v.typ) && isInt(to) && holds(to, v.typ):
		if b, ok := types.Unalias(to).(*types.Basic); ok {
			return v.as(b.Kind())
		}
	}
	if isAny(t.typ) || isList(t.typ) && isList(to) && isAny(elemOf(t.typ)) {
		c.machine = true // it finds out
		return t
	}
	if t.con != nil && t.lit && isInt(t.typ) && isInt(to) {
		return c.errorf(start(t.node), "%v does not fit %s", t.con, c.typeName(to))
	}
	return c.errorf(start(t.node), "%s is %s; expected %s", role, c.a(t.typ), c.typeName(to))
}

// pointed is what t points to, whatever that is.
func (c *compiler) pointed(t *term) *term {
	return &term{node: t.node, typ: pointee(t.typ), src: t.src, hint: t.hint, emit: func(w *writer) operand {
		return star(w.notNil(t.emit(w), t.typ, t.hint, t.said()))
	}}
}

// typed is o, written by t, with the type spelled out where a declaration would give a literal another one.
func (o operand) typed(w *writer, t *term) operand {
	if !t.lit || types.Identical(t.typ, literal(t.node, t.con).typ) {
		return o
	}
	return o.from(w.typ(t.typ) + "(" + o.text + ")")
}

// converted is t converted to any type that its own can be converted to.
func converted(t *term, to types.Type) *term {
	return t.then(to, func(w *writer, o operand) operand {
		name := w.typ(to)
		if pointee(to) != nil {
			name = "(" + name + ")"
		}
		return o.from(name + "(" + o.text + ")")
	})
}

// meet returns the terms in the one type that the places they come from can share, or nil after an error at n. Without one
// they are left to the machine.
func (c *compiler) meet(n ast.Node, terms []*term) []*term {
	if slices.ContainsFunc(terms, func(t *term) bool { return isAny(t.typ) }) {
		return []*term{c.onMachine(n, anything)}
	}
	to := terms[0].typ
	for i, t := range terms[1:] {
		to = shared(to, t, terms[:i+1])
	}
	met := make([]*term, len(terms))
	for i, t := range terms {
		switch v := t.value(); {
		case types.Identical(t.typ, to):
			met[i] = t
		case t.fits(to):
			v := *t
			v.typ = to
			met[i] = &v
		case types.Identical(v.typ, to):
			met[i] = v
		case isText(v.typ) && isText(to), isBool(v.typ) && isBool(to), isInt(v.typ) && isInt(to) && holds(to, v.typ),
			is(v.typ, types.IsFloat) && is(to, types.IsFloat):
			b, basic := types.Unalias(to).(*types.Basic)
			if !basic {
				return []*term{c.onMachine(n, anything)}
			}
			met[i] = v.as(b.Kind())
		default:
			return []*term{c.onMachine(n, anything)}
		}
	}
	if isNil(to) {
		c.errorf(n, "nil has no type here")
		return nil
	}
	if !c.nameable(to) {
		return []*term{c.onMachine(n, to)}
	}
	return met
}

// mixed reports whether terms, which are to have type to, keep types of their own in expr.
func mixed(terms []*term, to types.Type) bool {
	return slices.ContainsFunc(terms, func(t *term) bool {
		if v := t.value().typ; t.mixed || isText(v) && !types.Identical(v, to) && (hasMethods(v) || hasMethods(to)) {
			return true
		}
		from, ok := under(t.value().typ).(*types.Basic)
		as, basic := under(to).(*types.Basic)
		return ok && basic && from.Info()&types.IsNumeric != 0 && from.Kind() != as.Kind()
	})
}

// shared returns the type that holds what those before t, of type to, and t may be, if there is one.
func shared(to types.Type, t *term, before []*term) types.Type {
	literals := !slices.ContainsFunc(before, func(t *term) bool { return !t.lit })
	switch {
	case isNil(to), literals && !t.lit:
		return t.typ
	case t.fits(to), isNil(t.typ):
		return to
	case isInt(to) && isInt(t.typ) && holds(t.typ, to):
		return t.typ
	case isInt(to) && isInt(t.typ) && !holds(to, t.typ) && !wide(to) && !wide(t.typ):
		return types.Typ[types.Int]
	case is(to, types.IsFloat) && is(t.typ, types.IsFloat) && !types.Identical(to, t.typ), literals && is(t.typ, types.IsFloat):
		return types.Typ[types.Float64]
	}
	return to
}

func (c *compiler) valueOf(n ast.Node) *term {
	if t := c.term(n); t != nil {
		return t.value()
	}
	return nil
}
