package expr

import (
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"golang.org/x/tools/go/types/typeutil"
)

// member lowers a field, a method to be called, an element of a map, an array or a slice, or a declaration of an imported package.
func (c *compiler) member(n *ast.MemberNode) *term {
	if p := c.importedAs(n.Node); p != nil {
		return c.ofPackage(n, n.Property, p, n.Node.String()+".")
	}
	base := c.term(n.Node)
	if base == nil {
		return nil
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		return c.index(n, base)
	}
	of := base
	obj, path, _ := types.LookupFieldOrMethod(of.typ, true, c.env.Package, name.Value)
	if obj == nil {
		of = of.sole()
		obj, path, _ = types.LookupFieldOrMethod(of.typ, true, c.env.Package, name.Value)
	}
	if obj == nil {
		of = of.value()
		obj, path, _ = types.LookupFieldOrMethod(of.typ, true, c.env.Package, name.Value)
	}
	if obj == nil {
		obj, path = c.tagged(of.typ, name.Value)
	}
	m, hasKeys := aggregate(of.typ).(*types.Map)
	switch {
	case obj != nil && c.reachable(n, of.typ, path):
		return c.selected(n, base, of, obj, path)
	case obj != nil:
		return nil
	case hasKeys && (isText(m.Key()) || isAny(m.Key())):
		return c.index(n, base)
	case isAny(of.typ):
		return c.dynamic(of, nil)
	}
	if isList(of.typ) {
		return c.errorf(name, "an index must be an integer; this is %s", name)
	}
	return c.errorf(name, "%s has no field or method %s%s", c.typeName(base.typ), name.Value, c.nearest(of.typ, name.Value))
}

// chain lowers an optional chain, which ends with n.
func (c *compiler) chain(n *ast.ChainNode) *term {
	t := c.term(n.Node)
	if t == nil {
		return nil
	}
	v := *t
	v.ended = true
	return &v
}

// passes returns the parts of base that n, a member of it, needs: those before a ?. in the same chain, and base itself if ?. comes before n.
func (t *term) passes(n ast.Node) []*term {
	if m, ok := n.(*ast.MemberNode); ok && m.Optional {
		return t.parts()
	}
	switch t.node.(type) {
	case *ast.MemberNode, *ast.CallNode, *ast.SliceNode:
		if !t.ended {
			return t.links
		}
	}
	return nil
}

// selected lowers a field or a method of base, which is written as of.
func (c *compiler) selected(n *ast.MemberNode, base, of *term, o types.Object, path []int) *term {
	t := &term{node: n, typ: o.Type(), links: base.passes(n)}
	if m, ok := o.(*types.Func); ok {
		t.isMethod = true
		t.write = func(w *writer) operand { return of.method(w, w.term(of), m, path) }
		return t
	}
	t.write = func(w *writer) operand {
		f := w.term(of)
		w.fails = w.fails || nilable(of.typ) && !of.neverNil || len(pointers(of.typ, path)) > 0
		return operand{text: f.in(highest) + "." + o.Name(), prec: highest, addr: f.addr || pointee(of.typ) != nil}
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

// nearest suggests the field or method of t that a name may mean: the field with the name in one of its tags, or the one spelt most like it.
func (c *compiler) nearest(t types.Type, name string) string {
	if s, ok := aggregate(t).(*types.Struct); ok {
		for i := range s.NumFields() {
			if f := s.Field(i); (f.Exported() || f.Pkg() == c.env.Package) && strings.Contains(strings.ReplaceAll(s.Tag(i), ",", `"`), `:"`+name+`"`) {
				return "; did you mean " + f.Name() + "?"
			}
		}
	}
	return suggest(name, c.members(t))
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
		return under(elem)
	}
	return under(t)
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

// index lowers an element of a map or of a list.
func (c *compiler) index(n *ast.MemberNode, base *term) *term {
	key := c.term(n.Property)
	if key == nil {
		return nil
	}
	var t *term
	switch of := base.value(); {
	case isMap(of.typ):
		t = c.element(n, of, key)
	case isList(of.typ):
		t = c.item(n, of, key.value())
	case isAny(of.typ):
		return c.dynamic(of, nil)
	case isText(of.typ):
		return c.errorf(n, "%s cannot be indexed; slice it: %s[0:1]", c.a(base.typ), base.said())
	default:
		return c.errorf(n, "%s cannot be indexed", c.a(base.typ))
	}
	if t != nil {
		t.links = base.passes(n)
	}
	return t
}

// element lowers an element of a map, or the zero value if there is none.
func (c *compiler) element(n ast.Node, base, key *term) *term {
	m := under(base.typ).(*types.Map)
	if key = c.assign(key, m.Key(), "the key"); key == nil {
		return nil
	}
	return &term{node: n, typ: m.Elem(), write: func(w *writer) operand {
		o := w.all(base, c.compared(key, base))
		w.fails = w.fails || types.IsInterface(m.Key()) // a key that cannot be compared
		return primary(o[0].in(highest) + "[" + o[1].text + "]")
	}}
}

// item lowers an element of a list. A negative index counts from the end.
func (c *compiler) item(n *ast.MemberNode, base, key *term) *term {
	array, _ := under(base.typ).(*types.Array)
	i, fixed := key.con.(int)
	switch {
	case isAny(key.typ):
		return c.dynamic(key, whole)
	case !isInt(key.typ):
		return c.errorf(start(n.Property), "an index must be an integer; this is %s", c.a(key.typ))
	case fixed && array != nil && (int64(i) >= array.Len() || int64(i) < -array.Len()):
		return c.errorf(start(n.Property), "index %d is out of range of %s: it is %s", i, base.said(), c.a(array))
	case fixed && array != nil && i < 0:
		key, i = literal(key.node, i+int(array.Len())), 0
	}
	elem := elemOf(base.typ)
	if !fixed || i < 0 {
		return operated(goCall(n, elem, wrapPath, "At", sliced(base), key.integer(types.Int)))
	}
	return &term{node: n, typ: elem, write: func(w *writer) operand {
		o := w.all(base, key)
		w.fails = w.fails || array == nil
		return operand{text: o[0].in(highest) + "[" + o[1].text + "]", prec: highest, addr: o[0].addr || array == nil}
	}}
}

// slice lowers x[from:to], where a negative bound counts from the end, and a bound that is too large is the end. The bounds of a text count
// bytes.
func (c *compiler) slice(n *ast.SliceNode) *term {
	base := c.valueOf(n.Node)
	if base == nil {
		return nil
	}
	bounds := []*term{literal(n, 0), goConstant(n, whole, "math", "MaxInt")}
	for i, node := range []ast.Node{n.From, n.To} {
		if node == nil {
			continue
		}
		bound := c.valueOf(node)
		switch {
		case bound == nil:
			return nil
		case isAny(bound.typ):
			return c.dynamic(bound, whole)
		case !isInt(bound.typ):
			return c.errorf(start(node), "a bound must be an integer; this is %s", c.a(bound.typ))
		}
		bounds[i] = bound.integer(types.Int)
	}
	var t *term
	switch {
	case isText(base.typ):
		t = goCall(n, text, wrapPath, "SliceText", c.read(base.as(types.String)), bounds[0], bounds[1])
	case isList(base.typ):
		t = goCall(n, types.NewSlice(elemOf(base.typ)), wrapPath, "Slice", c.list(base), bounds[0], bounds[1])
	case isAny(base.typ):
		return c.dynamic(base, nil)
	default:
		return c.errorf(n, "%s cannot be sliced here", c.a(base.typ))
	}
	t.links = base.passes(n)
	return t
}

// array lowers a list literal:
//
//	[]string{phone, "x"}
func (c *compiler) array(n *ast.ArrayNode) *term {
	items, ok := c.terms(n.Nodes)
	if !ok {
		return nil
	}
	if items == nil {
		items = []*term{}
	}
	for i, item := range items {
		if items[i] = c.nullable(item); items[i] == nil {
			return nil
		}
	}
	met := c.common(n, items)
	if met == nil {
		return nil
	}
	return listOf(n, typeOf(met), met, items)
}

// typeOf returns the one type of terms, or any if there is no term.
func typeOf(met []*term) types.Type {
	if len(met) == 0 {
		return anything
	}
	return met[0].typ
}

// listOf returns a list literal. met are its items in the type of its elements.
func listOf(n ast.Node, elem types.Type, met, items []*term) *term {
	list := types.NewSlice(elem)
	return &term{node: n, typ: list, items: items, write: func(w *writer) operand { return w.composite(list, texts(w.all(met...))) }}
}

// bytes lowers b"text":
//
//	[]byte("text")
func (c *compiler) bytes(n *ast.BytesNode) *term {
	list := types.NewSlice(types.Universe.Lookup("byte").Type())
	return &term{node: n, typ: list, write: func(w *writer) operand {
		return w.conversion(list, primary(strconv.Quote(string(n.Value))))
	}}
}

// mapping lowers a map literal:
//
//	map[string]int{"free": 10, "paid": 100}
func (c *compiler) mapping(n *ast.MapNode) *term {
	var keys, values []*term
	for _, pair := range n.Pairs {
		p := pair.(*ast.PairNode)
		k, v := c.valueOf(p.Key), c.nullable(c.term(p.Value))
		switch {
		case k == nil || v == nil:
			return nil
		case !isText(k.typ):
			return c.errorf(start(p.Key), "the keys of a map are strings; this is %s", c.a(k.typ))
		case k.con != nil && slices.ContainsFunc(keys, func(o *term) bool { return o.con == k.con }):
			return c.errorf(start(p.Key), "the map has the key %s already", k.said())
		}
		keys, values = append(keys, k.as(types.String)), append(values, v)
	}
	met := c.common(n, values)
	if met == nil {
		return nil
	}
	table := types.NewMap(text, typeOf(met))
	return &term{node: n, typ: table, write: func(w *writer) operand {
		var pairs []string
		for i, k := range keys {
			pairs = append(pairs, w.term(k).text+": "+w.term(met[i]).text)
		}
		return w.composite(table, pairs)
	}}
}

// common returns terms in one type. If they have none, that is any.
func (c *compiler) common(n ast.Node, terms []*term) []*term {
	if len(terms) == 0 {
		return []*term{}
	}
	if !slices.ContainsFunc(terms, func(t *term) bool { return !isNil(t.typ) }) {
		return each(terms, func(t *term) *term { return t.converted(anything) })
	}
	met := c.meet(n, terms)
	if met == nil || !c.canName(n, met[0].typ) {
		return nil
	}
	return met
}
