package expr

import (
	"fmt"
	"go/types"
	"reflect"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// chain lowers what contains a ?.: as a whole it may be absent.
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
	return c.missing(name, base.typ)
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

// missing reports a name that t has not.
func (c *compiler) missing(name *ast.StringNode, t types.Type) *term {
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

// receiver writes t after making sure that neither it nor the embedded fields on path are nil.
func (t *term) receiver(w *writer, path []int, optional bool) operand {
	o := t.base(w, optional)
	if nilable(t.typ) {
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
		if nilable(at) {
			o = w.twice(t.hint, o)
			w.notNil(operand{text: o.in(highest) + suffix, prec: highest, path: true}, at, "", t.said()+suffix)
		}
	}
	return o
}

// base writes t, which a ?. that may leave t as well stands behind if it is optional: a?.b?.["c"] is two chains, of which
// the outer one ends where the inner one does.
func (t *term) base(w *writer, optional bool) operand {
	if optional && w.exits != nil {
		return t.attempt(w)
	}
	return t.emit(w)
}

// some makes sure that o, which is what t wrote, is not nil; a part of an optional chain is left unless it is.
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

// unhashable reports whether a value of type t may be of a type that is no key of any map, at which Go panics.
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
	if sure := ok && fixed; sure && (int64(i) >= array.Len() || int64(i) < -array.Len()) {
		return c.errorf(start(n.Property), "index %d is out of range of %s: it is %s", i, base.said(), c.a(array))
	}
	t := &term{node: n, typ: elem, src: indexed(base, key), hint: "value"}
	t.emit = func(w *writer) operand {
		list := w.twice("list", w.pointed(base, n.Optional))
		var at string
		switch {
		case array != nil && fixed:
			at = strconv.Itoa((i + int(array.Len())) % int(array.Len()))
		case fixed:
			at = w.constantIndex(i, list.text, base.said())
		default:
			at = w.variableIndex(key.whole(), list.text, base.said())
		}
		return operand{text: list.in(highest) + "[" + at + "]", prec: highest, addr: true}
	}
	return t
}

func (w *writer) constantIndex(i int, list, said string) string {
	length := "len(" + list + ")"
	index := strconv.Itoa(i)
	switch {
	case i == 0:
		w.failIf(length+" == 0", said+" is empty")
		return index
	case i > 0:
		w.failIndex(length+" <= "+index, index, length, said)
		return index
	}
	w.failIndex(length+" < "+index[1:], index, length, said)
	return length + index
}

func (w *writer) variableIndex(key *term, list, said string) string {
	length := "len(" + list + ")"
	index := key.emit(w)
	if !index.stable { // it is written twice
		index = w.define("index", index)
	}
	at := w.local("i")
	w.add(at + " := " + index.text)
	w.add("if " + at + " < 0 {" + indented([]string{at + " += " + length}) + "}")
	w.failIndex(at+" < 0 || "+at+" >= "+length, index.text, length, said)
	return at
}

// failIndex leaves the method if cond holds, and says how long the list is. An index that is known stands in the message.
func (w *writer) failIndex(cond, index, length, said string) {
	message, args := "index %d is out of range of %s, which has %d", []string{index, length}
	if _, err := strconv.Atoi(index); err == nil {
		message, args = "index "+index+" is out of range of %s, which has %d", args[1:]
	}
	text := fmt.Sprintf("%q", strings.Replace(message, "%s", strings.ReplaceAll(said, "%", "%%"), 1))
	err := w.std("fmt", "Errorf") + "(" + text + ", " + strings.Join(args, ", ") + ")"
	w.add("if " + cond + " {" + indented([]string{w.names.FailErr(err)}) + "}")
}
