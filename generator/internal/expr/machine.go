package expr

import (
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
	"github.com/ratelimit-go/ratelimit/runtime/exprvm"
)

// value is what an expression calls by a name of the method or of the package.
type value struct {
	name  string
	write func(*writer) operand
}

// named remembers a value that the machine would have to be given.
func (c *compiler) named(name string, write func(*writer) operand) {
	if !slices.ContainsFunc(c.values, func(v value) bool { return v.name == name }) {
		c.values = append(c.values, value{name, write})
	}
}

// hide remembers a member that the machine does not see by itself.
func (c *compiler) hide(n ast.Node, t types.Type, member types.Object, path []int) {
	h := Hidden{t, member.Name()}
	known := slices.ContainsFunc(c.hidden, func(o Hidden) bool { return o.Name == h.Name && types.Identical(o.Of, h.Of) })
	if known || seenByExpr(t, member, path) {
		return
	}
	if types.IsInterface(t) || !c.env.CanName(t) || reach.Mentions(t, isTypeParam) {
		c.onlyGo(n, "%s of %s is not seen by expr's machine, which has to run this; write a function for it", h.Name, c.typeName(t))
	}
	c.hidden = append(c.hidden, h)
}

// onlyGo keeps an error for the case that the expression does not become Go.
func (c *compiler) onlyGo(n ast.Node, format string, args ...any) {
	c.refusals.Add(c.expr.At(offset(c.expr.Value, n.Location().From)), format, args...)
}

// seenByExpr reports whether reflection finds the member. It takes no addresses, which a method of a pointer may need, and a tag
// can hide a field.
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

// onMachine is a term that does not become Go: the whole expression goes to expr's machine.
func (c *compiler) onMachine(n ast.Node, t types.Type) *term {
	c.machine = true
	return &term{node: n, typ: t}
}

// maybeNil is a term of type t that may be nil, as an optional chain is. Go has no variable for that: the machine computes it.
func (c *compiler) maybeNil(n ast.Node, t types.Type) *term {
	m := c.onMachine(n, t)
	m.gates = []*term{m}
	return m
}

// optional reports whether t may be nil, whatever its type, where it is not made a text: a text must be there.
func (t *term) optional() bool {
	return len(t.gates) > 0 && t.bare == nil && !t.final
}

// orNil returns the gates of t, and t itself if its type has a nil.
func (t *term) orNil() []*term {
	if !nilable(t.typ) {
		return t.gates
	}
	return append(slices.Clip(t.gates), t)
}

// program hands the whole expression, whose value is t, to the machine.
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
	as := map[Want]struct{ method, hint string }{Island: {"Text", "text"}, Bool: {"Bool", "ok"}, Int: {"Int", "n"}}[want]
	return p, &term{node: t.node, typ: t.typ, write: func(w *writer) operand {
		var args []string
		for _, v := range c.values {
			args = append(args, v.write(w).text)
		}
		w.called = true
		return w.must(as.hint, w.names.Program(p)+"."+as.method+"("+strings.Join(args, ", ")+")")
	}}
}

// array is a list spelled out.
func (c *compiler) array(n *ast.ArrayNode) *term {
	items, ok := c.terms(n.Nodes)
	if !ok {
		return nil
	}
	return c.onMachine(n, types.NewSlice(common(items)))
}

// mapping is a map spelled out.
func (c *compiler) mapping(n *ast.MapNode) *term {
	var values []*term
	ok := true
	for _, pair := range n.Pairs {
		p := pair.(*ast.PairNode)
		k, v := c.term(p.Key), c.term(p.Value)
		values, ok = append(values, v), ok && k != nil && v != nil
		if k != nil && !takes('s', k.typ) {
			ok = c.errorf(start(p.Key), "the keys of a map are texts; this is %s", c.a(k.typ)) != nil
		}
	}
	if !ok {
		return nil
	}
	return c.onMachine(n, types.NewMap(text, common(values)))
}

// common is the type that all of terms have, or any.
func common(terms []*term) types.Type {
	if len(terms) == 0 || isNil(terms[0].typ) {
		return anything
	}
	for _, t := range terms {
		if !types.Identical(t.typ, terms[0].typ) || t.optional() {
			return anything
		}
	}
	return terms[0].typ
}
