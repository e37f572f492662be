package expr

import (
	"cmp"
	"go/types"
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

// unnamed returns t, a number, without the name of its type, whose methods do not apply to the result of an operator. As for the machine,
// a duration stays one.
func (t *term) unnamed() *term {
	if _, ok := types.Unalias(t.typ).(*types.Basic); ok || isDuration(t.typ) {
		return t
	}
	return t.as(t.typ.Underlying().(*types.Basic).Kind())
}

// then returns a term of type to that writes f of the Go code of t.
func (t *term) then(to types.Type, f func(*writer, operand) operand) *term {
	return &term{node: t.node, typ: to, con: t.con, optional: t.optional, decided: t.decided, write: func(w *writer) operand {
		return f(w, w.term(t))
	}}
}

// integer returns t, an integer, converted to a basic type. If the value does not fit, the method returns a KeyError.
func (t *term) integer(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if t.fits(to) || holds(to, t.typ) {
		return t.as(kind)
	}
	return t.then(to, func(w *writer, o operand) operand {
		return w.must(w.callOf(w.std(checkedPath, "To")+"["+w.typ(to)+"]", o))
	})
}

// checked returns a call of a function of package checked. If it returns an error, the method returns a KeyError.
func checked(n ast.Node, t types.Type, fn string, args ...*term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand {
		return w.must(w.callOf(w.std(checkedPath, fn), w.all(args...)...))
	}}
}

// plainly returns t as a value that must not be nil.
func (t *term) plainly() *term {
	if !t.optional {
		return t
	}
	v := *t
	v.optional = false
	return &v
}

// resultOf returns t as the result of a function at n, which fails if its argument is nil.
func (t *term) resultOf(n ast.Node) *term {
	if t == nil {
		return nil
	}
	v := *t
	v.node, v.optional, v.unchecked = n, false, nil
	return &v
}

// value returns t as an operand. A pointer to a basic type stands for its target.
func (t *term) value() *term {
	if elem := pointee(t.typ); elem != nil && isBasic(elem) {
		return t.pointed()
	}
	return t
}

// pointed returns the target of the pointer t.
func (t *term) pointed() *term {
	return &term{node: t.node, typ: pointee(t.typ), optional: true, write: func(w *writer) operand {
		o := w.term(t)
		w.fails = true
		return operand{text: "*" + o.in(unary), prec: unary, addr: true}
	}}
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
	v := t
	if elem := pointee(t.typ); elem != nil && !types.AssignableTo(t.typ, to) {
		v = t.pointed()
	}
	switch {
	case t.fits(to), types.AssignableTo(t.typ, to):
		c.machine = c.machine || t.optional && nilable(to) // a call gets nil if a part of t is nil
		return t
	case types.AssignableTo(v.typ, to), v.fits(to):
		return v
	case is(to, types.IsFloat) && isInt(v.typ), isInt(v.typ) && isInt(to) && (holds(to, v.typ) || types.Identical(to, whole)):
		if b, ok := types.Unalias(to).(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
			return v.integer(b.Kind())
		} else if ok {
			return v.as(b.Kind())
		}
	}
	if isAny(t.typ) || isList(t.typ) && isList(to) && isAny(elemOf(t.typ)) {
		c.machine = true // the machine checks the type in each call
		return t
	}
	if t.con != nil && t.lit && isInt(t.typ) && isInt(to) {
		return c.errorf(start(t.node), "%v does not fit %s", t.con, c.typeName(to))
	}
	return c.errorf(start(t.node), "%s is %s; expected %s", role, c.a(t.typ), c.typeName(to))
}

// becomes reports whether a literal can replace a value of type to without any difference.
func (t *term) becomes(to types.Type) bool {
	if !t.fits(to) || hasMethods(to) {
		return isNil(t.typ) && t.fits(to)
	}
	b, basic := to.Underlying().(*types.Basic)
	return isNil(t.typ) || basic && (b.Kind() == types.Int64 && isInt(t.typ) || types.Identical(b, t.typ))
}

// meet returns the terms converted to one type, or nil after an error at n. If they have no common type, it returns one term for the
// machine.
func (c *compiler) meet(n ast.Node, terms []*term) []*term {
	to := terms[0].typ
	for _, t := range terms[1:] {
		if isNil(to) || terms[0].lit && !t.lit && !isNil(t.typ) {
			to = t.typ
		}
	}
	if isNil(to) {
		c.errorf(n, "nil has no type here")
		return nil
	}
	met := make([]*term, len(terms))
	for i, t := range terms {
		switch v := t.value(); {
		case types.Identical(t.typ, to):
			met[i] = t
		case t.becomes(to):
			v := *t
			v.typ = to
			met[i] = &v
		case types.Identical(v.typ, to):
			met[i] = v
		default:
			return []*term{c.onMachine(n, anything)}
		}
	}
	if isAny(to) || !c.env.CanName(to) {
		return []*term{c.onMachine(n, to)}
	}
	return met
}

func (c *compiler) valueOf(n ast.Node) *term {
	if t := c.term(n); t != nil {
		return t.value()
	}
	return nil
}
