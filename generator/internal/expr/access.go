package expr

import (
	"go/types"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"golang.org/x/tools/go/types/typeutil"
)

// passes reports whether n, a member of t, is nil if t is nil, because of ?. before n or earlier in the same chain.
func (t *term) passes(n *ast.MemberNode) bool {
	if n.Optional {
		return nilable(t.typ) || t.optional
	}
	switch t.node.(type) {
	case *ast.MemberNode, *ast.CallNode, *ast.SliceNode:
		return t.optional
	}
	return false
}

// member lowers a field, a method to be called, or an element of a map, an array or a slice.
func (c *compiler) member(n *ast.MemberNode) *term {
	if name, ok := ofEnv(n); ok {
		return c.argument(n, name)
	}
	base := c.term(n.Node)
	if base == nil {
		return nil
	}
	if base.absent {
		return c.ofAbsent(n)
	}
	if name, ok := n.Property.(*ast.StringNode); ok {
		obj, path, _ := types.LookupFieldOrMethod(base.typ, true, c.env.Package, name.Value)
		if obj == nil {
			obj, path = c.tagged(base.typ, name.Value)
		}
		m, isMap := aggregate(base.typ).(*types.Map)
		switch {
		case obj != nil:
			return c.selected(n, base, obj, path)
		case isTypeParam(base.typ):
			return c.onMachine(n, anything) // the type argument may have this member
		case !isAny(base.typ) && !(isMap && mayBe(isText, m.Key())):
			return c.errorf(name, "%s has no field or method %s%s", c.typeName(base.typ), name.Value, suggest(name.Value, c.members(base.typ)))
		}
	}
	t := c.index(n, base)
	if t != nil && base.passes(n) {
		return c.maybeNil(n, t.typ)
	}
	return t
}

// selected lowers a field or a method of base.
func (c *compiler) selected(n *ast.MemberNode, base *term, o types.Object, path []int) *term {
	if !c.reachable(n, base.typ, path) {
		return nil
	}
	c.hide(n.Property, base.typ, o, path)
	t := &term{node: n, typ: o.Type(), optional: base.passes(n)}
	if m, ok := o.(*types.Func); ok {
		t.isMethod = true
		t.write = func(w *writer) operand { return base.method(w, w.term(base), m, path) }
		return t
	}
	t.decided = base.decided && !nilable(t.typ)
	t.write = func(w *writer) operand {
		f := w.term(base)
		w.fails = w.fails || nilable(base.typ) && !base.neverNil || len(pointers(base.typ, path)) > 0
		return operand{text: f.in(highest) + "." + o.Name(), prec: highest, addr: f.addr || pointee(base.typ) != nil}
	}
	if t.optional && (len(path) > 1 || !n.Optional && panicsIfNil(base.typ)) {
		c.machine = true // a nil after this point would not end the chain
	}
	return t
}

// tagged finds the field with this name in its expr tag. It does not search embedded structs.
func (c *compiler) tagged(t types.Type, name string) (types.Object, []int) {
	s, ok := aggregate(t).(*types.Struct)
	if !ok {
		return nil, nil
	}
	for i := range s.NumFields() {
		if f := s.Field(i); reflect.StructTag(s.Tag(i)).Get("expr") == name && f.Exported() {
			return f, []int{i}
		}
	}
	return nil, nil
}

// members returns the names of the fields and methods of t that the annotated package can access.
func (c *compiler) members(t types.Type) []string {
	var names []string
	see := func(o types.Object) {
		if o.Exported() || o.Pkg() == c.env.Package {
			names = append(names, o.Name())
		}
	}
	for _, m := range typeutil.IntuitiveMethodSet(t, nil) {
		see(m.Obj())
	}
	if s, ok := aggregate(t).(*types.Struct); ok {
		for f := range s.Fields() {
			see(f)
			if inner, ok := aggregate(f.Type()).(*types.Struct); ok && f.Embedded() {
				for f := range inner.Fields() {
					see(f)
				}
			}
		}
	}
	return names
}

// aggregate returns the underlying type of t or, if t is a pointer, of the type that t points to.
func aggregate(t types.Type) types.Type {
	if elem := pointee(t); elem != nil {
		return elem.Underlying()
	}
	return t.Underlying()
}

// reachable reports whether all embedded pointers on path can be compared with nil. It reports the first that cannot.
func (c *compiler) reachable(n *ast.MemberNode, t types.Type, path []int) bool {
	for _, i := range path[:len(path)-1] {
		f := aggregate(t).(*types.Struct).Field(i)
		if nilable(f.Type()) && !f.Exported() && f.Pkg() != c.env.Package {
			c.errorf(n, "this is promoted through %s, which may be nil and cannot be reached from here", f.Name())
			return false
		}
		t = f.Type()
	}
	return true
}

// pointers returns the part of the path to a member of t that ends with the last embedded pointer or interface.
func pointers(t types.Type, path []int) []int {
	last := 0
	for i, field := range path[:len(path)-1] {
		t = aggregate(t).(*types.Struct).Field(field).Type()
		if panicsIfNil(t) {
			last = i + 1
		}
	}
	return path[:last]
}

// panicsIfNil reports whether access to a member of a nil value of type t panics.
func panicsIfNil(t types.Type) bool {
	return nilable(t) && (pointee(t) != nil || types.IsInterface(t.Underlying()))
}

// index lowers an element of a map. It leaves elements of lists to the machine, as indices may be negative or out of range.
func (c *compiler) index(n *ast.MemberNode, base *term) *term {
	key := c.term(n.Property)
	if key == nil {
		return nil
	}
	switch of := aggregate(base.typ).(type) {
	case *types.Map:
		return c.element(n, base, c.assign(key, of.Key(), "the key"), of.Elem())
	case *types.Slice, *types.Array:
		return c.item(n, base, key.value())
	}
	switch {
	case isAny(base.typ):
		return c.onMachine(n, anything)
	case isText(aggregate(base.typ)):
		return c.errorf(n, "%s cannot be indexed; slice it: %s[0:1]", c.a(base.typ), base.said())
	}
	return c.errorf(n, "%s cannot be indexed", c.a(base.typ))
}

// element lowers an element of a map, or the zero value if there is none. It leaves maps with interface keys to the machine, as Go
// panics on a key that cannot be compared.
func (c *compiler) element(n *ast.MemberNode, base, key *term, elem types.Type) *term {
	if key == nil {
		return nil
	}
	if pointee(base.typ) != nil || types.IsInterface(key.typ) {
		return c.onMachine(n, elem)
	}
	return &term{node: n, typ: elem, write: func(w *writer) operand {
		o := w.all(base, key)
		return primary(o[0].in(highest) + "[" + o[1].text + "]")
	}}
}

// item checks an element of a list. A negative index counts from the end.
func (c *compiler) item(n *ast.MemberNode, base, key *term) *term {
	array, _ := aggregate(base.typ).(*types.Array)
	i, fixed := key.con.(int)
	switch {
	case !mayBe(isInt, key.typ):
		return c.errorf(start(n.Property), "an index must be an integer; this is %s", c.a(key.typ))
	case fixed && array != nil && (int64(i) >= array.Len() || int64(i) < -array.Len()):
		return c.errorf(start(n.Property), "index %d is out of range of %s: it is %s", i, base.said(), c.a(array))
	}
	return c.onMachine(n, elemOf(base.typ))
}

// slice checks x[from:to], which the machine computes. The bounds of a text count bytes.
func (c *compiler) slice(n *ast.SliceNode) *term {
	nodes := slices.DeleteFunc([]ast.Node{n.Node, n.From, n.To}, func(n ast.Node) bool { return n == nil })
	var args []*term
	for _, each := range nodes {
		args = append(args, c.valueOf(each))
	}
	if slices.Contains(args, nil) {
		return nil
	}
	_, result, wrong := choose(functions()["slice"], args)
	switch {
	case result == nil && wrong == 0:
		return c.errorf(n, "%s cannot be sliced here", c.a(args[0].typ))
	case result == nil:
		return c.errorf(start(nodes[wrong]), "a bound must be an integer; this is %s", c.a(args[wrong].typ))
	}
	return c.onMachine(n, result, args[0])
}
