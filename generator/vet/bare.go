package vet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// isBare is the fact that the values of a type have no limits of their own, though there are wrappers for what it implements.
type isBare struct{ Of []limits }

func (*isBare) AFact() {}
func (b *isBare) String() string {
	s := "bare"
	for _, l := range b.Of {
		s += " " + l.Interface
	}
	return s
}

// findBare exports the facts of the types of this package.
func (c *checker) findBare() {
	wrappers := c.wrappers()
	if len(wrappers) == 0 {
		return
	}
	scope := c.Pkg.Scope()
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || types.IsInterface(object.Type()) || c.ImportObjectFact(object, new(isWrapper)) {
			continue
		}
		var fact isBare
		for _, w := range wrappers {
			if implements(object, w.of) && declares(object, w.of) && !c.holds(object, w.of) {
				fact.Of = append(fact.Of, w.limits)
			}
		}
		if len(fact.Of) > 0 {
			c.ExportObjectFact(object, &fact)
		}
	}
}

// implements reports whether values of a type, or pointers to them, have the methods of iface. What generic types implement
// depends on their arguments.
func implements(object *types.TypeName, iface *types.Named) bool {
	named, ok := object.Type().(*types.Named)
	if !ok || named.TypeParams().Len() > 0 || iface.TypeParams().Len() > 0 {
		return false
	}
	of, ok := iface.Underlying().(*types.Interface)
	return ok && types.Implements(types.NewPointer(named), of)
}

// declares reports whether a type has a method of iface that it does not get from what it embeds.
func declares(object *types.TypeName, iface *types.Named) bool {
	for m := range object.Type().(*types.Named).Methods() {
		if found, _, _ := types.LookupFieldOrMethod(iface, false, m.Pkg(), m.Name()); found != nil {
			return true
		}
	}
	return false
}

// holds reports whether a struct has a field with values of iface or of a wrapper, or with several of them.
func (c *checker) holds(object *types.TypeName, iface *types.Named) bool {
	s, ok := object.Type().Underlying().(*types.Struct)
	if !ok {
		return false
	}
	of := iface.Underlying().(*types.Interface)
	for f := range s.Fields() {
		t := f.Type()
		switch u := t.Underlying().(type) {
		case *types.Slice:
			t = u.Elem()
		case *types.Map:
			t = u.Elem()
		}
		wrapper := typeName(t)
		if types.IsInterface(t) && types.Implements(t, of) || wrapper != nil && c.ImportObjectFact(wrapper, new(isWrapper)) {
			return true
		}
	}
	return false
}

// limits returns what may be missed when a method of a type is called on a bare value.
func (c *checker) limits(object *types.TypeName) []limits {
	if object == nil {
		return nil
	}
	var fact isBare
	c.ImportObjectFact(object, &fact)
	return append(fact.Of, c.bare[object]...)
}

// findComposed finds what the files pass to the constructors of wrappers.
func (c *checker) findComposed(files []*ast.File) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			callee := typeutil.StaticCallee(c.TypesInfo, call)
			if callee == nil {
				return true
			}
			w := c.wrapperBy(callee.Origin())
			if w == nil {
				return true
			}
			t := c.TypesInfo.TypeOf(call.Args[0])
			if object := typeName(t); types.IsInterface(t) {
				c.composed = append(c.composed, w.limits)
			} else if object != nil && !c.isComposed(object, w.limits) {
				c.bare[object] = append(c.bare[object], w.limits)
			}
			return true
		})
	}
}

// isComposed reports whether this package wraps values of a type itself.
func (c *checker) isComposed(object *types.TypeName, l limits) bool {
	return slices.ContainsFunc(c.bare[object], l.same)
}
