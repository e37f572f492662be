package collect

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// valid reports whether t has no invalid parts. If it has, valid reports the errors of the type checker in node, the syntax of t.
// If there are none in node, a type of C is the reason, or one of all errors of the package.
func (c *collector) valid(t types.Type, node ast.Node) bool {
	if !reach.Mentions(t, isUnknown) {
		return true
	}
	inside := slices.DeleteFunc(slices.Clone(c.pkg.Errors), func(e annotations.Diagnostic) bool {
		return e.Pos < node.Pos() || e.Pos >= node.End()
	})
	switch of := typeOfC(node); {
	case len(inside) > 0:
		c.found = slices.Concat(c.found, inside, c.pkg.Unimported()) // a failed import may be the reason for an undefined name
	case of != nil:
		name := types.ExprString(of)
		c.found.Add(of.Pos(), "a wrapper cannot name types of C; declare one of Go for %s, such as type T %s", name, name)
	case len(c.pkg.Errors) > 0:
		c.found = append(c.found, c.pkg.Errors...)
	default: // an alias in node is the type of C
		c.found.Add(node.Pos(), "a type in this declaration is not known; a wrapper cannot name types of C")
	}
	return false
}

// typeOfC returns the first type of C in node, or nil.
func typeOfC(node ast.Node) (of *ast.SelectorExpr) {
	ast.Inspect(node, func(n ast.Node) bool {
		if e, ok := n.(*ast.SelectorExpr); ok && of == nil && source.NameOf(e.X) == "C" {
			of = e
		}
		return of == nil
	})
	return of
}

// isUnknown reports whether t is invalid, or an interface that embeds an invalid type.
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

// expressible reports whether this package can name the types in the signature of m. It reports the first that it cannot name.
func (c *methods) expressible(m *model.Method) bool {
	reason := ""
	if !reach.Mentions(m.Signature, func(t types.Type) bool { reason = c.from().Unnameable(t); return reason != "" }) {
		return true
	}
	c.found.Add(m.Pos, "the signature of %s needs %s; declare %[1]s here with a type that can be named, such as an alias", m.Name, reason)
	return false
}

// from returns the place of the code of the wrapper.
func (c *methods) from() reach.From {
	return reach.From{Package: c.pkg.Types, TypeParams: c.of.TypeParams}
}
