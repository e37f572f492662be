package vet

import (
	"go/ast"
	"go/token"
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
func (c *checker) findBare(wrappers []*wrapper) {
	scope := c.Pkg.Scope()
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || types.IsInterface(object.Type()) || c.ImportObjectFact(object, new(isWrapper)) {
			continue
		}
		var fact isBare
		for _, w := range wrappers {
			if !w.wraps(object) || !declares(object, w.of) {
				continue
			}
			c.noteInside(object, w.limits)
			if !c.holds(object, w) {
				fact.Of = append(fact.Of, w.limits)
			}
		}
		if len(fact.Of) > 0 {
			c.ExportObjectFact(object, &fact)
		}
	}
}

// noteInside notes an implementation, with the types of this package that it consists of: who wraps it limits what is in there.
// What consists of it in turn, as a program does which its handlers point back to, is not limited so.
func (c *checker) noteInside(object *types.TypeName, l limits) {
	for _, part := range c.partsOf(object) {
		named, ok := part.(*types.Named)
		if !ok || named.Obj().Pkg() != c.Pkg || types.IsInterface(named) {
			continue
		}
		if name := named.Obj(); name == object || !slices.Contains(c.partsOf(name), object.Type()) {
			c.inside[name] = append(c.inside[name], l)
		}
	}
}

// wraps reports whether pointers to values of a type can be wrapped, which have all its methods. Whether they can if the wrapper
// is generic, and for which type arguments, Go itself finds out from a call of the constructor.
func (w *wrapper) wraps(object *types.TypeName) bool {
	named, ok := object.Type().(*types.Named)
	if !ok || named.TypeParams().Len() > 0 { // what it implements depends on type arguments
		return false
	}
	of, ok := w.of.Underlying().(*types.Interface)
	if w.of.TypeParams().Len() == 0 {
		return ok && types.Implements(types.NewPointer(named), of)
	}
	pkg := types.NewPackage("call", "call")
	pkg.Scope().Insert(types.NewVar(token.NoPos, pkg, "next", types.NewPointer(named)))
	pkg.Scope().Insert(types.NewFunc(token.NoPos, pkg, "wrap", w.construct.Signature()))
	call := &ast.CallExpr{Fun: ast.NewIdent("wrap"), Args: []ast.Expr{ast.NewIdent("next"), ast.NewIdent("nil")}}
	return types.CheckExpr(token.NewFileSet(), pkg, token.NoPos, call, nil) == nil
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

// holds reports whether values of a type have others in them that may be limited: of the interface, of a wrapper, or funcs like
// its limited methods.
func (c *checker) holds(object *types.TypeName, w *wrapper) bool {
	of := w.of.Underlying().(*types.Interface)
	for _, part := range c.partsOf(object) {
		name := typeName(part)
		switch u := part.Underlying().(type) {
		case *types.Interface:
			if types.Implements(part, of) {
				return true
			}
		case *types.Signature:
			if w.limitsSome(u) {
				return true
			}
		}
		if name == w.of.Obj() || name != nil && c.ImportObjectFact(name, new(isWrapper)) {
			return true
		}
	}
	return false
}

// limitsSome reports whether w limits a method with the signature of fn.
func (w *wrapper) limitsSome(fn *types.Signature) bool {
	return slices.ContainsFunc(w.Methods, func(name string) bool {
		method, _, _ := types.LookupFieldOrMethod(w.of, false, w.construct.Pkg(), name)
		return method != nil && types.Identical(method.Type(), fn)
	})
}

// limits returns what may be missed when a method of a type is called on a bare value.
func (c *checker) limits(object *types.TypeName) []limits {
	if object == nil {
		return nil
	}
	var fact isBare
	c.ImportObjectFact(object, &fact)
	all := slices.Clone(fact.Of)
	for _, l := range c.bare[object] {
		if !slices.ContainsFunc(all, l.same) {
			all = append(all, l)
		}
	}
	return all
}

// findComposed finds what the files pass to the constructors of wrappers. A function that they take as a value is called by others,
// who may do so.
func (c *checker) findComposed(files []*ast.File) {
	called := map[ast.Expr]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				called[ast.Unparen(n.Fun)] = true
				c.compose(n)
			case *ast.Ident:
				if fn, ok := c.TypesInfo.Uses[n].(*types.Func); ok && !called[n] {
					c.returns[fn.Origin()] = true
				}
			}
			return true
		})
	}
}

// compose notes what call passes to the constructor of a wrapper, if it is one of that.
func (c *checker) compose(call *ast.CallExpr) {
	callee := typeutil.StaticCallee(c.TypesInfo, call)
	if callee == nil || len(call.Args) != 2 {
		return
	}
	w := c.wrapperBy(callee.Origin())
	if w == nil {
		return
	}
	value := c.unconverted(call.Args[0])
	t := c.TypesInfo.TypeOf(value)
	if object := typeName(t); types.IsInterface(t) {
		c.noteComposed(value, w.limits)
	} else if object != nil && !c.isComposed(object, w.limits) && !c.holds(object, w) {
		c.bare[object] = append(c.bare[object], w.limits)
	}
}

// noteComposed notes that a value is wrapped which is an interface already. What a function returns tells which values these are;
// others may come from anywhere.
func (c *checker) noteComposed(value ast.Expr, l limits) {
	if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
		if fn := typeutil.StaticCallee(c.TypesInfo, call); fn != nil {
			c.returns[fn.Origin()] = true
			return
		}
	}
	c.composed = append(c.composed, l)
}

// isComposed reports whether this package wraps values of a type itself.
func (c *checker) isComposed(object *types.TypeName, l limits) bool {
	return slices.ContainsFunc(c.bare[object], l.same)
}
