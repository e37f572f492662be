package expr

import (
	"go/types"
	"reflect"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// chain lowers an optional chain such as a?.b, which may be absent.
func (c *compiler) chain(n *ast.ChainNode) *term {
	inner := c.term(n.Node)
	if inner == nil || inner.gone {
		return inner
	}
	t := *inner
	t.try = inner.emit
	t.emit = func(w *writer) operand {
		exits := w.exits
		w.exits = nil
		o := inner.emit(w)
		w.exits = exits
		return o
	}
	return &t
}

// member lowers a field, or an element of a map, an array or a slice.
func (c *compiler) member(n *ast.MemberNode) *term {
	if name, ok := ofEnv(n); ok {
		return c.argument(n, name)
	}
	base := c.term(n.Node)
	if base == nil {
		return nil
	}
	return c.memberOf(base, n)
}

// memberOf lowers a field or an element of base.
func (c *compiler) memberOf(base *term, n *ast.MemberNode) *term {
	if base.gone {
		return c.ofAbsent(n)
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		return c.index(n, base)
	}
	if isAny(base.typ) {
		return c.onMachine(n, anything)
	}
	base = c.concrete(base, name.Value)
	obj, path, _ := types.LookupFieldOrMethod(base.typ, true, c.env.Package, name.Value)
	if obj == nil {
		obj, path = c.tagged(base.typ, name.Value)
	}
	switch o := obj.(type) {
	case *types.Var:
		return c.field(n, base, o, path)
	case *types.Func:
		return c.errorf(name, "%s is a method; call it: %s(...)", name.Value, name.Value)
	}
	if m, ok := aggregate(base.typ).(*types.Map); ok && (isText(m.Key()) || isAny(m.Key())) {
		return c.index(n, base)
	}
	return c.noMember(name, base.typ)
}

// tagged finds the field whose tag gives it a name for expr. Embedded structs are not searched.
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

// noMember reports a field or a method that t does not have.
func (c *compiler) noMember(name *ast.StringNode, t types.Type) *term {
	if isNil(t) {
		return c.errorf(name, "nil has no field %s", name.Value)
	}
	return c.errorf(name, "%s has no field or method %s%s", c.typeName(t), name.Value, suggest(name.Value, c.members(t)))
}

// members returns the fields and methods of t that the annotated package sees.
func (c *compiler) members(t types.Type) []string {
	var names []string
	see := func(o types.Object) {
		if o.Exported() || o.Pkg() == c.env.Package {
			names = append(names, o.Name())
		}
	}
	set := types.NewMethodSet(t)
	if _, ok := t.Underlying().(*types.Struct); ok {
		set = types.NewMethodSet(types.NewPointer(t))
	}
	for m := range set.Methods() {
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

// aggregate is what t, or what t points to, is made of.
func aggregate(t types.Type) types.Type {
	if elem := pointee(t); elem != nil {
		return under(elem)
	}
	return under(t)
}

func (c *compiler) field(n *ast.MemberNode, base *term, f *types.Var, path []int) *term {
	if !c.valid(n, f.Type()) || !c.reachable(n, base.typ, path) {
		return nil
	}
	c.hide(n.Property, base.typ, f, path)
	t := &term{node: n, typ: f.Type(), hint: hintOf(f.Name())}
	if base.src != "" {
		t.src = base.src + "." + f.Name()
	}
	t.emit = func(w *writer) operand {
		o := base.receiver(w, path[:len(path)-1], n.Optional)
		o.text, o.prec = o.in(highest)+"."+f.Name(), highest
		o.addr = o.addr || pointee(base.typ) != nil
		o.stable = false
		return o
	}
	return t
}

// reachable reports whether the embedded pointers on the way can be compared with nil.
func (c *compiler) reachable(n *ast.MemberNode, t types.Type, path []int) bool {
	for _, i := range path[:len(path)-1] {
		s, ok := aggregate(t).(*types.Struct)
		if !ok {
			return true
		}
		f := s.Field(i)
		if nilable(f.Type()) && !f.Exported() && f.Pkg() != c.env.Package {
			c.errorf(n, "this is promoted through %s, which may be nil and cannot be reached from here", f.Name())
			return false
		}
		t = f.Type()
	}
	return true
}

// receiver writes t after making sure that neither it nor the embedded fields on path are nil. A map, a slice or a function may
// be nil and have methods.
func (t *term) receiver(w *writer, path []int, optional bool) operand {
	o := t.base(w, optional)
	if optional && nilable(t.typ) || panicsIfNil(t.typ) {
		o = w.some(o, t, optional)
	}
	at, suffix := t.typ, ""
	for _, i := range path {
		s, ok := aggregate(at).(*types.Struct)
		if !ok {
			break
		}
		at = s.Field(i).Type()
		suffix += "." + s.Field(i).Name()
		if panicsIfNil(at) {
			o = w.twice(t.hint, o)
			w.notNil(operand{text: o.in(highest) + suffix, prec: highest, path: true}, at, "", t.said()+suffix)
		}
	}
	return o
}

// panicsIfNil reports whether a member of a t cannot be had where that is nil.
func panicsIfNil(t types.Type) bool {
	return nilable(t) && (pointee(t) != nil || types.IsInterface(t.Underlying()))
}

// base writes t as the base of a member. Behind ?. the chain that is being written also ends where t is absent: a?.b?.["c"] is
// two chains, and the outer one ends where the inner one does.
func (t *term) base(w *writer, optional bool) operand {
	if optional && w.exits != nil {
		return t.attempt(w)
	}
	return t.emit(w)
}

// some checks that o, which t wrote, is not nil. If it is nil an optional chain ends, and anything else leaves the method.
func (w *writer) some(o operand, t *term, optional bool) operand {
	if !optional || w.exits == nil {
		return w.notNil(o, t.typ, t.hint, t.said())
	}
	o = w.twice(t.hint, o)
	w.leaveUnless(o, t.typ)
	return o
}

// index lowers base[property].
func (c *compiler) index(n *ast.MemberNode, base *term) *term {
	key := c.term(n.Property)
	if key == nil {
		return nil
	}
	if isAny(base.typ) {
		return c.onMachine(n, anything)
	}
	switch a := aggregate(base.typ).(type) {
	case *types.Map:
		return c.element(n, base, key, a)
	case *types.Slice:
		return c.nth(n, base, key, a.Elem())
	case *types.Array:
		return c.nth(n, base, key, a.Elem())
	case *types.Basic:
		if isText(a) {
			return c.errorf(n, "%s cannot be indexed; slice it: %s[0:1]", c.a(base.typ), base.said())
		}
	}
	return c.errorf(n, "%s cannot be indexed", c.a(base.typ))
}

// element lowers an element of a map: its zero value if there is none.
func (c *compiler) element(n *ast.MemberNode, base, key *term, m *types.Map) *term {
	key = c.assign(key, m.Key(), "the key")
	if key == nil || !c.valid(n, m.Elem()) {
		return nil
	}
	if unhashable(key.typ) {
		return c.onMachine(n, m.Elem())
	}
	t := &term{node: n, typ: m.Elem(), src: indexed(base, key), hint: "value"}
	t.emit = func(w *writer) operand {
		o := w.then([]operand{w.pointed(base, n.Optional)}, key.emit)
		r := o[0].from(o[0].in(highest) + "[" + o[1].text + "]")
		r.calls, r.stable = o[0].calls || o[1].calls, false
		return r
	}
	return t
}

// unhashable reports whether t may hold a value that cannot be a key of a map, such as a slice. Go panics at it.
func unhashable(t types.Type) bool { return types.IsInterface(t) && !isTypeParam(t) }

func indexed(base, key *term) string {
	if base.src == "" || key.src == "" {
		return ""
	}
	return base.src + "[" + key.src + "]"
}

// pointed writes a map, a slice or an array, or one that a pointer points to.
func (w *writer) pointed(t *term, optional bool) operand {
	o := t.base(w, optional)
	if pointee(t.typ) != nil {
		o = w.some(o, t, optional)
		return operand{text: "(*" + o.text + ")", prec: highest, path: true, addr: true}
	}
	if optional && nilable(t.typ) && w.exits != nil {
		return w.some(o, t, true)
	}
	return o
}

// nth lowers an element of a slice or an array. A negative index counts from the end.
func (c *compiler) nth(n *ast.MemberNode, base, key *term, elem types.Type) *term {
	key = key.value()
	if isAny(key.typ) {
		return c.onMachine(n, elem)
	}
	if !isInt(key.typ) {
		return c.errorf(start(n.Property), "an index must be an integer; this is %s", c.a(key.typ))
	}
	if !c.valid(n, elem) {
		return nil
	}
	i, fixed := key.con.(int)
	array, ok := aggregate(base.typ).(*types.Array)
	if fixed && ok && (int64(i) >= array.Len() || int64(i) < -array.Len()) {
		return c.errorf(start(n.Property), "index %d is out of range of %s: it is %s", i, base.said(), c.a(array))
	}
	key = c.integer(key, arithmeticKind(key))
	t := &term{node: n, typ: elem, src: indexed(base, key), hint: "value"}
	t.emit = func(w *writer) operand {
		list := w.twice("list", w.pointed(base, n.Optional))
		at := strconv.Itoa(i)
		if array != nil && fixed {
			at = strconv.Itoa((i + int(array.Len())) % int(array.Len()))
			return operand{text: list.in(highest) + "[" + at + "]", prec: highest, addr: true}
		}
		length := w.word("len") + "(" + list.text + ")"
		switch {
		case fixed && i >= 0:
			w.failIf(length+" < "+strconv.Itoa(i+1), base.said()+" has no element "+at)
		case fixed:
			w.failIf(length+" < "+at[1:], base.said()+" has no element "+at)
			at = length + at
		default:
			at = w.must("i", w.std(checkedPath, "Index")+"("+key.emit(w).text+", "+length+")").text
		}
		return operand{text: list.in(highest) + "[" + at + "]", prec: highest, addr: true}
	}
	return t
}

// slice checks x[from:to], of a text in bytes, which expr's machine computes.
func (c *compiler) slice(n *ast.SliceNode) *term {
	base, ok := c.valueOf(n.Node), true
	for _, bound := range []ast.Node{n.From, n.To} {
		if bound == nil {
			continue
		}
		t := c.valueOf(bound)
		if ok = ok && t != nil; t != nil && !takes('n', t.typ) {
			c.errorf(start(bound), "a bound must be an integer; this is %s", c.a(t.typ))
			ok = false
		}
	}
	switch {
	case base == nil || !ok:
		return nil
	case isText(base.typ), isAny(base.typ):
		return c.onMachine(n, base.typ)
	case isList(base.typ):
		return c.onMachine(n, types.NewSlice(itemOf(base.typ)))
	}
	return c.errorf(n, "%s cannot be sliced here", c.a(base.typ))
}
