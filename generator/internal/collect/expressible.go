package collect

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// valid reports whether all of t is known. If it is not, the errors are the type checker's own: those in node, which is the
// syntax of t, or else all of the package's, as one of them is the reason.
func (c *collector) valid(t types.Type, node ast.Node) bool {
	if !mentions(t, isUnknown) {
		return true
	}
	inside := slices.DeleteFunc(slices.Clone(c.pkg.Errors), func(e annotations.Error) bool {
		return e.Pos < node.Pos() || e.Pos >= node.End()
	})
	switch {
	case len(inside) > 0:
		c.errs = append(c.errs, inside...)
	case len(c.pkg.Errors) > 0:
		c.errs = append(c.errs, c.pkg.Errors...)
	default:
		c.errorOfC(node)
	}
	return false
}

// errorOfC tells of the type of C in node: there is no other reason why a type should be unknown where nothing is wrong.
func (c *collector) errorOfC(node ast.Node) {
	var of *ast.SelectorExpr
	ast.Inspect(node, func(n ast.Node) bool {
		if e, ok := n.(*ast.SelectorExpr); ok && of == nil && load.NameOf(e.X) == "C" {
			of = e
		}
		return of == nil
	})
	if of == nil { // an alias is
		c.errorf(node.Pos(), "a type in this declaration is not known; a wrapper cannot name types of C")
		return
	}
	name := types.ExprString(of)
	c.errorf(of.Pos(), "a wrapper cannot name types of C; declare one of Go for %s, such as type T %s", name, name)
}

// isUnknown reports whether t is invalid, or an interface whose methods are not all known.
func isUnknown(t types.Type) bool {
	if iface, ok := t.(*types.Interface); ok {
		for e := range iface.EmbeddedTypes() {
			if e.Underlying() == types.Typ[types.Invalid] {
				return true
			}
		}
	}
	return t == types.Typ[types.Invalid]
}

// expressible makes the signature of m one that can be written in this package, and reports whether that is possible.
func (c *methods) expressible(m *model.Method) bool {
	r := rewriter{methods: c}
	m.Signature = r.signature(m.Signature)
	if r.reason != "" && c.pkg.Apart {
		return true // another package may have an alias
	}
	if r.reason != "" {
		c.errorf(m.Pos, "the signature of %s needs %s", m.Name, r.reason)
	}
	return r.reason == ""
}

// unspeakable says why this package cannot name t, leaving aside what t consists of; "" if it can.
func (c *methods) unspeakable(t types.Type) string {
	var o *types.TypeName
	switch t := t.(type) {
	case *types.Named:
		o = t.Obj()
	case *types.Alias:
		o = t.Obj()
	case *types.Basic:
		o, _ = types.Universe.Lookup(t.Name()).(*types.TypeName)
	case *types.Struct:
		return c.unexportedField(t)
	case *types.Interface:
		return c.unexportedMethod(t)
	}
	switch {
	case o == nil:
		return ""
	case o.Pkg() == nil && c.hides(o.Name()):
		return "Go's own " + o.Name() + ", but another one hides it here"
	case o.Pkg() == nil:
		return ""
	case o.Pkg().Path() == c.pkg.Types.Path():
		if c.paramHides(o.Name()) {
			return "the type " + o.Name() + ", which a type parameter hides"
		}
		return ""
	}
	name := o.Pkg().Path() + "." + o.Name()
	switch {
	case !o.Exported():
		return name + ", which is not exported"
	case !accessible(o.Pkg().Path(), c.pkg.Path):
		return name + ", which is internal to another module or folder"
	case o.Pkg().Name() == "main":
		return name + ", which is of a program and cannot be imported"
	}
	return ""
}

// unexportedField says which field of a struct that is spelt out belongs to another package.
func (c *collector) unexportedField(t *types.Struct) string {
	for f := range t.Fields() {
		if !f.Exported() && f.Pkg().Path() != c.pkg.Types.Path() {
			return "a struct with the field " + f.Name() + " of package " + f.Pkg().Path() + ", which is not exported"
		}
	}
	return ""
}

// unexportedMethod says which method of an interface that is spelt out belongs to another package.
func (c *collector) unexportedMethod(t *types.Interface) string {
	for f := range t.ExplicitMethods() {
		if !f.Exported() && f.Pkg().Path() != c.pkg.Types.Path() {
			return "an interface with the method " + f.Name() + " of package " + f.Pkg().Path() + ", which is not exported"
		}
	}
	return ""
}

// accessible reports whether package path may be imported by package from.
func accessible(path, from string) bool {
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

// mentions reports whether is holds for t or for a type that is part of its text. What a named type is declared as is no
// part of that, but what an alias stands for must be known, too, though never be named.
func mentions(t types.Type, is func(types.Type) bool) bool {
	if t == nil || is(t) {
		return t != nil
	}
	some := func(n int, at func(int) types.Type) bool {
		for i := range n {
			if mentions(at(i), is) {
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
		return mentions(t.Key(), is) || mentions(t.Elem(), is)
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		return mentions(t.Elem(), is)
	case *types.Tuple:
		return some(t.Len(), func(i int) types.Type { return t.At(i).Type() })
	case *types.Signature:
		return mentions(t.Params(), is) || mentions(t.Results(), is)
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
