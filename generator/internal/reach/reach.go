// Package reach decides what generated code may name in the place where it stands: which packages it may import, which types
// and identifiers it may spell, and what a type parameter or a declaration hides. It does not look for another way to say
// the same, such as an alias.
package reach

import (
	"go/types"
	"strings"
)

// From is where the code stands: in a package, among the type parameters of a wrapper.
type From struct {
	Package    *types.Package
	TypeParams *types.TypeParamList
}

// Hidden reports whether a type parameter hides what the package declares under a name.
func (f From) Hidden(name string) bool {
	for p := range f.TypeParams.TypeParams() {
		if p.Obj().Name() == name {
			return true
		}
	}
	return false
}

// Redefined reports whether a name that Go predeclares, such as string or len, means something else.
func (f From) Redefined(name string) bool {
	return f.Hidden(name) || f.Package.Scope().Lookup(name) != nil
}

// CanName reports whether the code can spell t, with all that t consists of.
func (f From) CanName(t types.Type) bool {
	return !Mentions(t, func(t types.Type) bool { return f.Unnameable(t) != "" })
}

// Unnameable says why the code cannot spell t, apart from the types that t consists of; "" if it can.
func (f From) Unnameable(t types.Type) string {
	switch t := t.(type) {
	case *types.Named:
		return f.unnameable(t.Obj())
	case *types.Alias:
		return f.unnameable(t.Obj())
	case *types.Basic:
		if f.Redefined(t.Name()) {
			return "Go's own " + t.Name() + ", but another one hides it here"
		}
	case *types.Struct:
		return f.foreignField(t)
	case *types.Interface:
		return f.foreignMethod(t)
	}
	return ""
}

func (f From) unnameable(o *types.TypeName) string {
	switch {
	case o.Pkg() == nil && f.Redefined(o.Name()):
		return "Go's own " + o.Name() + ", but another one hides it here"
	case o.Pkg() == nil:
		return ""
	case o.Pkg().Path() == f.Package.Path() && f.Hidden(o.Name()):
		return "the type " + o.Name() + ", which a type parameter hides"
	case o.Pkg().Path() == f.Package.Path():
		return ""
	}
	name := o.Pkg().Path() + "." + o.Name()
	switch {
	case !o.Exported():
		return name + ", which is not exported"
	case !Importable(o.Pkg().Path(), f.Package.Path()):
		return name + ", which is internal to another module or folder"
	case o.Pkg().Name() == "main":
		return name + ", which is of a program and cannot be imported"
	}
	return ""
}

// foreignField says which field of a struct that is spelt out belongs to another package.
func (f From) foreignField(t *types.Struct) string {
	for v := range t.Fields() {
		if !v.Exported() && v.Pkg().Path() != f.Package.Path() {
			return "a struct with the field " + v.Name() + " of package " + v.Pkg().Path() + ", which is not exported"
		}
	}
	return ""
}

// foreignMethod says which method of an interface that is spelt out belongs to another package.
func (f From) foreignMethod(t *types.Interface) string {
	for m := range t.ExplicitMethods() {
		if !m.Exported() && m.Pkg().Path() != f.Package.Path() {
			return "an interface with the method " + m.Name() + " of package " + m.Pkg().Path() + ", which is not exported"
		}
	}
	return ""
}

// Importable reports whether the package from may import the package path.
func Importable(path, from string) bool {
	from = strings.TrimSuffix(from, "_test")
	if strings.HasPrefix(path, "vendor/") {
		return false
	}
	i := strings.LastIndex("/"+path+"/", "/internal/")
	if i < 0 {
		return true
	}
	if i == 0 {
		return false // the standard library's
	}
	parent := path[:i-1]
	return from == parent || strings.HasPrefix(from, parent+"/")
}

// Mentions reports whether is holds for t or for a type in t's text. What a named type is declared as is no part of its
// text. An alias of something invalid counts as invalid.
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

// Names returns the identifiers in the text of t as the code spells it, but for those behind the name of a package.
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
