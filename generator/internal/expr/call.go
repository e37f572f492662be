package expr

import (
	"cmp"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// call lowers a call of a function of the package, of a method, or of a variable that holds a function.
func (c *compiler) call(n *ast.CallNode) *term {
	id, named := n.Callee.(*ast.IdentifierNode)
	if named && !c.env.declares(id.Value) {
		if own, ok := ownFunctions[id.Value]; ok {
			return c.own(n, own)
		}
	}
	f := c.valid(n.Callee, c.callee(n.Callee))
	if f != nil {
		if sig, ok := under(f.typ).(*types.Signature); ok {
			return c.invoke(n, f, sig)
		}
	}
	c.terms(n.Arguments)
	switch {
	case f == nil:
		return nil
	case isAny(f.typ):
		return c.dynamic(f, nil)
	}
	hint := ""
	if named && isFunction(id.Value) {
		hint = "; " + ownWord(id.Value)
	}
	return c.errorf(n.Callee, "%s cannot be called: it is %s%s", f.said(), c.a(f.typ), hint)
}

// callee lowers the function or method that a call names.
func (c *compiler) callee(n ast.Node) *term {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		o := c.env.Package.Scope().Lookup(n.Value)
		f, isFunc := o.(*types.Func)
		i := c.env.index(n.Value)
		switch {
		case isFunc && (i < 0 || i >= len(c.env.Params)) && !c.env.Hidden(n.Value):
			return &term{node: n, typ: f.Signature(), write: func(w *writer) operand { return variable(w.word(n.Value)) }}
		case o == nil && c.dotted(n) != nil:
		case o == nil && c.lets[n.Value] == nil && !c.env.declares(n.Value):
			near := slices.DeleteFunc(append(c.words(), slices.Sorted(maps.Keys(functions()))...), func(name string) bool { return !c.callable(name) })
			return c.errorf(n, "unknown function %s%s", n.Value, suggest(n.Value, near))
		}
	case *ast.MemberNode:
		return c.member(n)
	}
	return c.term(n)
}

// importedAs returns the package that n names, or nil. A package that cannot be imported is empty.
func (c *compiler) importedAs(n ast.Node) *types.Package {
	id, ok := n.(*ast.IdentifierNode)
	if !ok || c.lets[id.Value] != nil || c.env.index(id.Value) >= 0 || c.env.Hidden(id.Value) {
		return nil
	}
	if all := c.imported(id.Value); len(all) == 1 && all[0].Scope().Len() > 0 {
		return all[0]
	}
	return nil
}

// imported returns the packages that the file of the expression imports under a name.
func (c *compiler) imported(name string) []*types.Package {
	if c.env.ImportedAs == nil {
		return nil
	}
	return c.env.ImportedAs(c.expr.Pos, name)
}

// dotted returns the package of a dot import that declares the name n, which means nothing else, or nil.
func (c *compiler) dotted(n *ast.IdentifierNode) *types.Package {
	for _, p := range c.imported(".") {
		isOther := c.lets[n.Value] != nil || c.env.declares(n.Value) || c.env.Hidden(n.Value)
		if o := p.Scope().Lookup(n.Value); o != nil && o.Exported() && !isOther {
			return p
		}
	}
	return nil
}

// ofPackage lowers n, a function, a variable or a constant of an imported package. Its name is at a node, behind a qualifier.
func (c *compiler) ofPackage(n, at ast.Node, p *types.Package, qualifier string) *term {
	name := source(n)
	write := func(w *writer) operand { return variable(w.names.Import(p) + "." + name) }
	switch o := p.Scope().Lookup(name).(type) {
	case *types.Func:
		switch {
		case !o.Exported():
		case o.Signature().TypeParams().Len() > 0:
			return c.errorf(at, "%s%s is generic; %s", qualifier, name, c.inFunction(n))
		default:
			return &term{node: n, typ: o.Signature(), isMethod: true, write: write}
		}
	case *types.Var:
		if o.Exported() {
			return &term{node: n, typ: o.Type(), global: true, write: write}
		}
	case *types.Const:
		if o.Exported() {
			return c.constant(n, o, write)
		}
	case *types.TypeName:
		return c.errorf(at, "%s%s is a type, which cannot be used here", qualifier, name)
	}
	exported := slices.DeleteFunc(p.Scope().Names(), func(name string) bool {
		_, isType := p.Scope().Lookup(name).(*types.TypeName)
		return isType || !token.IsExported(name)
	})
	return c.errorf(at, "package %s has no %s%s", p.Name(), name, suggest(name, exported))
}

// callable reports whether a name is that of a function.
func (c *compiler) callable(name string) bool {
	var t types.Type
	if i := c.env.index(name); i >= 0 {
		t = c.env.variables()[i].Type
	} else if o := c.env.Package.Scope().Lookup(name); o != nil {
		t = o.Type()
	} else {
		return ownFunctions[name].usage != "" || isFunction(name)
	}
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// method writes the method m of o, the Go code of t, with a check that its receiver is not nil: wrap.NotNil(doc).Tenant. Methods of maps, slices
// and functions may be called on nil.
func (t *term) method(w *writer, o operand, m *types.Func, path []int) operand {
	at, neverNil := t.typ, t.neverNil || w.sure[t]
	for _, i := range pointers(t.typ, path) {
		f := aggregate(at).(*types.Struct).Field(i)
		o = operand{text: o.in(highest) + "." + f.Name(), prec: highest, addr: o.addr || pointee(at) != nil}
		at, neverNil = f.Type(), false
	}
	_, pointer := m.Signature().Recv().Type().(*types.Pointer)
	switch {
	case panicsIfNil(at) && !neverNil:
		o = w.callOf(w.std(wrapPath, "NotNil"), o)
	case pointer && !o.addr && !panicsIfNil(at):
		o = w.callOf(w.std(wrapPath, "Copy"), o)
	}
	w.fails = true
	return primary(o.in(highest) + "." + m.Name())
}

// invoke lowers a call of f. If the call returns an error, the method returns a KeyError.
func (c *compiler) invoke(n *ast.CallNode, f *term, sig *types.Signature) *term {
	args, ok := c.terms(n.Arguments)
	if !ok {
		return nil
	}
	name := cmp.Or(source(n.Callee), "the function")
	if sig.TypeParams().Len() > 0 {
		if sig = c.instance(n, name, args); sig == nil {
			return nil
		}
	}
	result := c.resultOf(n, name, sig)
	if result == nil || !c.arguments(n, name, sig, args) {
		return nil
	}
	return &term{node: n, typ: result, links: f.links, write: func(w *writer) operand {
		call := w.callOf(w.term(f).in(highest), w.all(args...)...)
		w.fails = true
		if sig.Results().Len() == 1 {
			return call
		}
		return w.must(call)
	}}
}

// resultOf returns the type of the value of a call, or nil after an error.
func (c *compiler) resultOf(n *ast.CallNode, name string, sig *types.Signature) types.Type {
	r := sig.Results()
	switch {
	case r.Len() == 0:
		c.errorf(n, "%s returns no value", name)
	case r.Len() > 2, r.Len() == 2 && !types.Identical(r.At(1).Type(), failure):
		c.errorf(n, "%s returns %s; expected one value, or a value and an error", name, c.typeName(r))
	default:
		return r.At(0).Type()
	}
	return nil
}

// arguments converts the terms to the types of the parameters, and reports whether that is possible.
func (c *compiler) arguments(n *ast.CallNode, name string, sig *types.Signature, terms []*term) bool {
	if !takesAsMany(sig, len(terms)) {
		c.errorf(n, "wrong number of arguments for %s: %d; it is a %s", name, len(terms), c.typeName(sig))
		return false
	}
	ok := true
	for i, t := range terms {
		terms[i] = c.assign(t, parameter(sig, i), "argument "+strconv.Itoa(i+1)+" of "+name)
		ok = ok && terms[i] != nil
	}
	return ok
}
