package expr

import (
	"go/types"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
	"github.com/ratelimit-go/ratelimit/runtime/exprvm"
)

// value is a variable, constant or function of the method or of the package that an expression uses.
type value struct {
	name  string
	write func(*writer) operand
}

// named records a value that the machine would need as an argument.
func (c *compiler) named(name string, write func(*writer) operand) {
	if !slices.ContainsFunc(c.values, func(v value) bool { return v.name == name }) {
		c.values = append(c.values, value{name, write})
	}
}

// hide records a member that the machine cannot access by itself.
func (c *compiler) hide(n ast.Node, t types.Type, member types.Object, path []int) {
	h := Hidden{t, member.Name()}
	known := slices.ContainsFunc(c.hidden, func(o Hidden) bool { return o.Name == h.Name && types.Identical(o.Of, h.Of) })
	if known || seenByExpr(t, member, path) {
		return
	}
	if types.IsInterface(t) || !c.env.CanName(t) || reach.Mentions(t, isTypeParam) {
		c.onlyGo(n, "%s of %s cannot be used in this expression, which does not become Go code; move the expression into a function of the package", h.Name, c.typeName(t))
	}
	c.hidden = append(c.hidden, h)
}

// onlyGo records an error that applies if the machine has to run the expression.
func (c *compiler) onlyGo(n ast.Node, format string, args ...any) {
	c.refusals.Add(c.expr.At(offset(c.expr.Value, n.Location().From)), format, args...)
}

// seenByExpr reports whether expr can access the member by reflection. It cannot call pointer methods of a value, and a tag can hide
// a field.
func seenByExpr(t types.Type, member types.Object, path []int) bool {
	if _, ok := member.(*types.Func); ok {
		return member.Exported() && types.NewMethodSet(t).Lookup(member.Pkg(), member.Name()) != nil
	}
	for _, i := range path {
		s, ok := aggregate(t).(*types.Struct)
		if !ok || reflect.StructTag(s.Tag(i)).Get("expr") == "-" {
			return false
		}
		t = s.Field(i).Type()
	}
	return member.Exported()
}

// onMachine returns a term that does not become Go. It leaves the whole expression to the machine. The term may be nil where one of parts
// may be.
func (c *compiler) onMachine(n ast.Node, t types.Type, parts ...*term) *term {
	c.machine = true
	return &term{node: n, typ: t, optional: mayBeNil(parts...)}
}

// maybeNil returns a term of type t that may also be nil, such as an optional chain. The machine computes it, as a Go variable of
// type t may not have a nil.
func (c *compiler) maybeNil(n ast.Node, t types.Type) *term {
	m := c.onMachine(n, t)
	m.optional = true
	return m
}

// mayBeNil reports whether one of terms may be nil, although its type has no nil.
func mayBeNil(terms ...*term) bool {
	return slices.ContainsFunc(terms, func(t *term) bool { return t.optional })
}

// program returns the whole expression, whose value is t, as a program for the machine, and the term that runs it.
func (c *compiler) program(t *term, want Want) (*Program, *term) {
	p := &Program{Source: c.expr.Value, Hidden: c.hidden}
	for _, v := range c.values {
		p.Names = append(p.Names, v.name)
	}
	if err := exprvm.New(p.Source, p.Names...).Err(); err != nil {
		c.refused(err)
		return nil, nil
	}
	if len(c.refusals) > 0 {
		c.errs = append(c.errs, c.refusals[0])
		return nil, nil
	}
	method := map[Want]string{Island: "Text", Bool: "Bool", Int: "Int", Duration: "Duration"}[want]
	return p, &term{node: t.node, typ: t.typ, write: func(w *writer) operand {
		var args []operand
		for _, v := range c.values {
			args = append(args, v.write(w))
		}
		return w.must(w.callOf(w.names.Program(p)+"."+method, args...))
	}}
}

// array lowers a list literal.
func (c *compiler) array(n *ast.ArrayNode) *term {
	items, ok := c.terms(n.Nodes)
	if !ok {
		return nil
	}
	return c.onMachine(n, types.NewSlice(common(items)))
}

// mapping lowers a map literal.
func (c *compiler) mapping(n *ast.MapNode) *term {
	var values []*term
	ok := true
	for _, pair := range n.Pairs {
		p := pair.(*ast.PairNode)
		k, v := c.term(p.Key), c.term(p.Value)
		values, ok = append(values, v), ok && k != nil && v != nil
		if k != nil && !mayBe(isText, k.typ) {
			ok = c.errorf(start(p.Key), "the keys of a map are strings; this is %s", c.a(k.typ)) != nil
		}
	}
	if !ok {
		return nil
	}
	return c.onMachine(n, types.NewMap(text, common(values)))
}

// common returns the type of all terms, or any if they differ.
func common(terms []*term) types.Type {
	if len(terms) == 0 || isNil(terms[0].typ) || mayBeNil(terms...) {
		return anything
	}
	for _, t := range terms {
		if !types.Identical(t.typ, terms[0].typ) {
			return anything
		}
	}
	return terms[0].typ
}
