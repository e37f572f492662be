// Package reach decides what generated code can refer to at the place where it stands: which packages it may import, which types
// and identifiers it can name, and which of them a type parameter or a declaration hides.
package reach

import (
	"go/types"
	"slices"
	"strings"
)

// From is the place of the code: a package, and the type parameters in scope.
type From struct {
	Package    *types.Package
	TypeParams []*types.TypeParam
}

// Hidden reports whether a type parameter hides the package-level declaration of a name.
func (f From) Hidden(name string) bool {
	return slices.ContainsFunc(f.TypeParams, func(p *types.TypeParam) bool { return p.Obj().Name() == name })
}

// Redefined reports whether a predeclared name of Go, such as string or len, is declared anew here.
func (f From) Redefined(name string) bool {
	return f.Hidden(name) || f.Package.Scope().Lookup(name) != nil
}

// CanName reports whether the code can name t and all types in it.
func (f From) CanName(t types.Type) bool {
	return !Mentions(t, func(t types.Type) bool { return f.Unnameable(t) != "" })
}

// Unnameable says why the code cannot name t, or returns "" if it can. It does not look at the types that t consists of.
func (f From) Unnameable(t types.Type) string {
	switch t := t.(type) {
	case *types.Named:
		return f.unnameable(t.Obj())
	case *types.Alias:
		return f.unnameable(t.Obj())
	case *types.Basic:
		return f.redefined(t.Name())
	case *types.Struct:
		for v := range t.Fields() {
			if f.IsForeign(v) {
				return "a struct with the field " + v.Name() + " of package " + v.Pkg().Path() + ", which is not exported"
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if f.IsForeign(m) {
				return "an interface with the method " + m.Name() + " of package " + m.Pkg().Path() + ", which is not exported"
			}
		}
	}
	return ""
}

// IsForeign reports whether o is an unexported field or method of another package, so that only that package can declare it.
func (f From) IsForeign(o types.Object) bool {
	return !o.Exported() && o.Pkg().Path() != f.Package.Path()
}

func (f From) redefined(name string) string {
	if f.Redefined(name) {
		return "Go's own " + name + ", but another one hides it here"
	}
	return ""
}

func (f From) unnameable(o *types.TypeName) string {
	if o.Pkg() == nil {
		return f.redefined(o.Name())
	}
	path := o.Pkg().Path()
	switch isOwn := path == f.Package.Path(); {
	case isOwn && f.Hidden(o.Name()):
		return "the type " + o.Name() + ", which a type parameter hides"
	case isOwn:
		return ""
	case !o.Exported():
		return path + "." + o.Name() + ", which is not exported"
	case !Importable(path, f.Package.Path()):
		return path + "." + o.Name() + ", which is internal to another module or folder"
	case o.Pkg().Name() == "main" && path != folder(f.Package.Path()):
		return path + "." + o.Name() + ", which is of a program and cannot be imported"
	}
	return ""
}

// IsNamed reports whether t is the type name of a package.
func IsNamed(t types.Type, pkg, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// Importable reports whether the package from may import the package path.
func Importable(path, from string) bool {
	if strings.HasPrefix(path, "vendor/") {
		return false
	}
	i := strings.LastIndex("/"+path+"/", "/internal/")
	return i < 0 || i > 0 && strings.HasPrefix(folder(from)+"/", path[:i]) // 0 is internal to the standard library
}

// folder returns the path of the folder of a package. An external test is in the folder of the package that it tests.
func folder(path string) string { return strings.TrimSuffix(path, "_test") }

// Mentions reports whether is(u) is true for t or a type u that t consists of. A named type consists of its name and its type
// arguments. An alias of an invalid type counts as invalid.
func Mentions(t types.Type, is func(types.Type) bool) bool {
	if t == nil || is(t) {
		return t != nil
	}
	some := func(n int, at func(int) types.Type) bool {
		for i := range n {
			if Mentions(at(i), is) {
				return true
			}
		}
		return false
	}
	switch t := t.(type) {
	case *types.Named:
		return some(t.TypeArgs().Len(), t.TypeArgs().At)
	case *types.Alias:
		return some(t.TypeArgs().Len(), t.TypeArgs().At) || t.Underlying() == types.Typ[types.Invalid]
	case *types.Map:
		return Mentions(t.Key(), is) || Mentions(t.Elem(), is)
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		return Mentions(t.Elem(), is)
	case *types.Tuple:
		return some(t.Len(), func(i int) types.Type { return t.At(i).Type() })
	case *types.Signature:
		return Mentions(t.Params(), is) || Mentions(t.Results(), is)
	case *types.Struct:
		return some(t.NumFields(), func(i int) types.Type { return t.Field(i).Type() })
	case *types.Union:
		return some(t.Len(), func(i int) types.Type { return t.Term(i).Type() })
	case *types.Interface:
		return some(t.NumExplicitMethods(), func(i int) types.Type { return t.ExplicitMethod(i).Type() }) ||
			some(t.NumEmbeddeds(), t.EmbeddedType)
	}
	return false
}

// Names returns the unqualified identifiers that the code needs to name t.
func (f From) Names(t types.Type) (names []string) {
	Mentions(t, func(t types.Type) bool {
		switch t := t.(type) {
		case *types.Basic:
			names = append(names, t.Name())
		case interface{ Obj() *types.TypeName }:
			if pkg := t.Obj().Pkg(); pkg == nil || pkg == f.Package {
				names = append(names, t.Obj().Name())
			}
		}
		return false
	})
	return names
}
