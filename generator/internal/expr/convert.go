package expr

import (
	"cmp"
	"go/types"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// as is t converted by Go's own conversion to the basic type named. A literal needs none, unless Go infers the type rune from it.
func (t *term) as(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if types.Identical(t.typ, to) || t.fits(to) && !types.Identical(t.typ, types.Universe.Lookup("rune").Type()) {
		return t
	}
	return t.then(to, func(w *writer, o operand) operand { return w.conversion(to, o) })
}

// then is t with f applied to what it is written as.
func (t *term) then(to types.Type, f func(*writer, operand) operand) *term {
	return &term{node: t.node, typ: to, con: t.con, gates: t.gates, write: func(w *writer) operand {
		return f(w, w.term(t))
	}}
}

// integer is t, an integer, in the type named. A value that does not fit leaves the method.
func (t *term) integer(kind types.BasicKind) *term {
	to := types.Typ[kind]
	if t.fits(to) || holds(to, t.typ) {
		return t.as(kind)
	}
	return &term{node: t.node, typ: to, gates: t.gates, write: func(w *writer) operand {
		return w.must("n", w.std(checkedPath, "To")+"["+w.typ(to)+"]("+w.term(t).text+")")
	}}
}

// checked calls a function of package checked. Its error leaves the method.
func checked(n ast.Node, t types.Type, fn string, args ...*term) *term {
	v := &term{node: n, typ: t}
	v.write = func(w *writer) operand {
		return w.must(v.hint(), w.callOf(w.std(checkedPath, fn), w.all(args...)...).text)
	}
	return v
}

// plainly is t as a value that must be there.
func (t *term) plainly() *term {
	v := *t
	v.gates = nil
	return &v
}

// value is what operators take: a pointer stands for what it points to, unless that has parts of its own.
func (t *term) value() *term {
	if elem := pointee(t.typ); elem != nil && isBasic(elem) {
		return t.pointed()
	}
	return t
}

// pointed is what t points to, whatever that is.
func (t *term) pointed() *term {
	return &term{node: t.node, typ: pointee(t.typ), gates: t.orNil(), write: func(w *writer) operand {
		return star(w.notNil(w.term(t), t))
	}}
}

func star(o operand) operand {
	return operand{text: "*" + o.text, prec: unary, path: o.path, addr: true}
}

// said is what the expression src calls t: the words from where t begins that give the same tree, which itself writes a['b'] as a.b.
func (t *term) said(src string) string {
	const most = 60
	tree := t.node.String()
	if len(tree) > most {
		return "the value"
	}
	src = src[offset(src, start(t.node).Location().From):]
	src = src[:min(len(src), 2*most)]
	for _, word := range words(src) {
		text := src[:offset(src, word.To)]
		if same, err := parser.Parse(text); err == nil && same.Node.String() == tree && !strings.ContainsFunc(text, unicode.IsControl) {
			return text
		}
	}
	return tree
}

// hint names a variable for t after what gives its value.
func (t *term) hint() string { return naming.Lower(source(t.node)) }

// source is the name of the variable, the field or the function that gives the value of n, or what its operator gives.
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
		switch n.Operator {
		case "??":
			return cmp.Or(source(n.Left), source(n.Right))
		case "==", "!=", "<", "<=", ">", ">=", "&&", "and", "||", "or", "in", "contains", "startsWith", "endsWith":
			return "ok"
		}
		return map[string]string{"+": "sum", "-": "difference", "*": "product", "%": "remainder"}[n.Operator]
	}
	return ""
}

// assign converts t so that Go can assign it to a variable of type to. It returns nil after reporting why that is impossible. A
// number may become one of a type that holds all its values.
func (c *compiler) assign(t *term, to types.Type, role string) *term {
	v := t
	if elem := pointee(t.typ); elem != nil && !types.AssignableTo(t.typ, to) {
		v = t.pointed()
	}
	switch {
	case t.fits(to), types.AssignableTo(t.typ, to):
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
		c.machine = true // it finds out
		return t
	}
	if t.con != nil && t.lit && isInt(t.typ) && isInt(to) {
		return c.errorf(start(t.node), "%v does not fit %s", t.con, c.typeName(to))
	}
	return c.errorf(start(t.node), "%s is %s; expected %s", role, c.a(t.typ), c.typeName(to))
}

// typed is o, which t wrote. It spells out the type of a literal where a declaration would give it another one.
func (o operand) typed(w *writer, t *term) operand {
	if !t.lit || types.Identical(t.typ, defaultType(t.con)) {
		return o
	}
	return o.from(w.typ(t.typ) + "(" + o.text + ")")
}

// becomes reports whether a literal is the same value as a t, whatever is done with it.
func (t *term) becomes(to types.Type) bool {
	if !t.fits(to) || hasMethods(to) {
		return isNil(t.typ) && t.fits(to)
	}
	b, basic := to.Underlying().(*types.Basic)
	return isNil(t.typ) || basic && (b.Kind() == types.Int64 && isInt(t.typ) || types.Identical(b, t.typ))
}

// meet returns the terms in one type, or nil after an error at n. Without a common type they are left to the machine.
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
