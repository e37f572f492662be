package expr

import (
	"go/types"
	"maps"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// call lowers a call of a function of the package, of a method, or of a variable that holds a function.
func (c *compiler) call(n *ast.CallNode) *term {
	switch callee := n.Callee.(type) {
	case *ast.IdentifierNode:
		if t, done := c.callName(n, callee); done {
			return t
		}
	case *ast.MemberNode:
		if name, ok := callee.Property.(*ast.StringNode); ok && !isEnv(callee.Node) {
			return c.callMember(n, callee, name)
		}
	}
	return c.callValue(n, c.term(n.Callee))
}

// callName calls what has a name, unless that is the name of a variable.
func (c *compiler) callName(n *ast.CallNode, callee *ast.IdentifierNode) (t *term, done bool) {
	name := callee.Value
	_, let := c.lets[name]
	_, ours := identities[name]
	o := c.env.Package.Scope().Lookup(name)
	f, isFunc := o.(*types.Func)
	switch {
	case ours && !c.env.declares(name):
		return c.identity(n, name), true
	case isFunc && c.env.param(name) < 0 && !c.env.Hidden(name):
		write := func(w *writer) operand { return variable(w.word(name)) }
		c.named(name, write)
		return c.invoke(n, name, f.Signature(), write), true
	case o == nil && !let && !c.env.declares(name):
		c.terms(n.Arguments)
		return c.errorf(callee, "unknown function %s%s", name, suggest(name, c.functions())), true
	}
	return nil, false
}

// functions returns the names that can be called.
func (c *compiler) functions() []string {
	names := slices.Collect(maps.Keys(identities))
	for _, name := range c.env.Package.Scope().Names() {
		if _, ok := c.env.Package.Scope().Lookup(name).(*types.Func); ok {
			names = append(names, name)
		}
	}
	names = slices.AppendSeq(names, maps.Keys(functions))
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *compiler) callMember(n *ast.CallNode, callee *ast.MemberNode, name *ast.StringNode) *term {
	base := c.term(callee.Node)
	if base == nil || base.gone || isAny(base.typ) {
		c.terms(n.Arguments)
	}
	switch {
	case base == nil:
		return nil
	case base.gone:
		return c.ofAbsent(callee)
	case isAny(base.typ):
		return c.onMachine(n, anything)
	}
	obj, path, _ := types.LookupFieldOrMethod(base.typ, true, c.env.Package, name.Value)
	m, ok := obj.(*types.Func)
	if !ok {
		return c.callValue(n, c.memberOf(base, callee))
	}
	if !c.reachable(callee, base.typ, path) {
		return nil
	}
	c.hide(callee.Property, base.typ, m, path)
	return c.ending(callee, base, c.invoke(n, name.Value, m.Signature(), func(w *writer) operand { return base.method(w, w.term(base), m, path) }))
}

// method writes m of o, which t wrote.
func (t *term) method(w *writer, o operand, m *types.Func, path []int) operand {
	o = t.receiver(w, o, path[:len(path)-1])
	if _, pointer := m.Signature().Recv().Type().(*types.Pointer); pointer && !o.addr && pointee(t.typ) == nil {
		o = w.define(t.hint(), o)
	}
	return operand{text: o.in(highest) + "." + m.Name(), prec: highest, calls: o.calls}
}

// callValue calls what a variable, a field or an element holds.
func (c *compiler) callValue(n *ast.CallNode, f *term) *term {
	if f != nil {
		if sig, ok := f.typ.Underlying().(*types.Signature); ok {
			t := c.invoke(n, f.said(), sig, func(w *writer) operand { return w.notNil(w.term(f), f) })
			if t != nil && f.optional() {
				return c.maybeNil(n, t.typ)
			}
			return t
		}
	}
	c.terms(n.Arguments)
	switch {
	case f == nil:
		return nil
	case isAny(f.typ):
		return c.onMachine(n, anything)
	}
	hint := ""
	if id, ok := n.Callee.(*ast.IdentifierNode); ok && isFunction(id.Value) {
		hint = "; " + ownWord(id.Value)
	}
	return c.errorf(n.Callee, "%s cannot be called: it is %s%s", f.said(), c.a(f.typ), hint)
}

// invoke lowers a call of callee. An error that the call returns leaves the method.
func (c *compiler) invoke(n *ast.CallNode, name string, sig *types.Signature, callee func(*writer) operand) *term {
	args, ok := c.terms(n.Arguments)
	if !ok {
		return nil
	}
	if sig.TypeParams().Len() > 0 {
		if sig = c.instance(n, name, args); sig == nil {
			return nil
		}
	}
	result := c.result(n, name, sig)
	if result == nil || !c.arguments(n, name, sig, args) {
		return nil
	}
	t := &term{node: n, typ: result}
	t.write = func(w *writer) operand {
		ops := []operand{callee(w)}
		for _, a := range args {
			ops = w.then(ops, a)
		}
		w.called = true
		o := w.callOf(ops[0].text, ops[1:]...)
		o.calls, o.stable = true, false
		if sig.Results().Len() == 1 {
			return o
		}
		return w.must(t.hint(), o.text)
	}
	return t
}

// result returns the type of a call's value.
func (c *compiler) result(n *ast.CallNode, name string, sig *types.Signature) types.Type {
	r := sig.Results()
	switch {
	case r.Len() == 0:
		c.errorf(n, "%s returns no value", name)
	case r.Len() > 2, r.Len() == 2 && !types.Identical(r.At(1).Type(), failure):
		c.errorf(n, "%s returns %s; expected one value, or a value and an error", name, c.typeName(r))
	case c.valid(n, r.At(0).Type()):
		return r.At(0).Type()
	}
	return nil
}

// arguments converts the terms to what the parameters take. It reports whether that is possible.
func (c *compiler) arguments(n *ast.CallNode, name string, sig *types.Signature, terms []*term) bool {
	params := sig.Params()
	fixed := params.Len()
	if sig.Variadic() {
		fixed--
	}
	if given := len(terms); given < fixed || given > fixed && !sig.Variadic() {
		c.errorf(n, "%s takes %s, not %d", name, count(fixed, sig.Variadic(), "argument"), given)
		return false
	}
	ok := true
	for i, t := range terms {
		to := params.At(min(i, params.Len()-1)).Type()
		if i >= fixed {
			to = to.(*types.Slice).Elem()
		}
		terms[i] = c.assign(t, to, "argument "+strconv.Itoa(i+1)+" of "+name)
		ok = ok && terms[i] != nil
	}
	return ok
}

func count(n int, orMore bool, noun string) string {
	s := strconv.Itoa(n) + " " + noun
	if n != 1 {
		s += "s"
	}
	if orMore {
		return s + " or more"
	}
	return s
}

// identity lowers clientIP(ctx) and userID(ctx).
func (c *compiler) identity(n *ast.CallNode, name string) *term {
	args, ok := c.terms(n.Arguments)
	if !ok {
		return nil
	}
	if len(args) != 1 || !implementsContext(args[0].typ) {
		return c.errorf(n, "%s takes the context alone; write %s(ctx)", name, name)
	}
	id := identities[name]
	c.named(name, func(w *writer) operand {
		return operand{text: w.std(machinePath, "OrNil") + "(" + w.std(wrapPath, id.fn) + ")", prec: highest}
	})
	plain := &term{node: n, typ: text, write: func(w *writer) operand {
		o := w.callOf(w.std(wrapPath, id.fn), w.all(args...)...)
		o.calls = true
		return o
	}}
	t := &term{node: n, typ: text, bare: plain, maybe: true}
	t.write = func(w *writer) operand {
		o := w.define(name, w.term(plain))
		if w.gates == nil {
			w.failIf(o.text+` == ""`, w.names.Fail("the context carries no "+id.what))
		} else {
			w.gate(operand{text: o.text + ` != ""`})
		}
		return o
	}
	return t
}

// carried is t as comparisons take it: there clientIP and userID are the empty text where the context carries none.
func (t *term) carried() *term {
	if t.bare != nil {
		return t.bare
	}
	return t
}
