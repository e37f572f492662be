package bypass

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// decorates reports whether a value of type t may pass its calls on to a wrapper: its type holds a value of the annotated interface or
// of the wrapper's type, or the value is made from such a value.
func (c *checker) decorates(value ast.Expr, t types.Type, l *limited) bool {
	d := decorator{checker: c, limited: l, seen: map[string]bool{}}
	if name := source.TypeName(t); name != nil {
		d.home = name.Pkg()
	}
	return d.holds(t) || c.origins.isMadeFrom(value, d.isLimited)
}

// decorator is one call of decorates.
type decorator struct {
	*checker
	*limited
	home *types.Package
	seen map[string]bool
}

// isLimited reports whether t is the annotated interface, or the type of its wrapper. A method with the same signature is not enough: a
// service may have the methods of the repository below it.
func (d *decorator) isLimited(t types.Type) bool {
	name := source.TypeName(t)
	return name != nil && (name == d.annotated || d.wrappers[name] == d.annotated)
}

// holds looks at fields, elements and results of funcs at any depth, but only inside structs of the package of the first type.
func (d *decorator) holds(t types.Type) bool {
	t = types.Unalias(t)
	if d.seen[t.String()] {
		return false
	}
	d.seen[t.String()] = true
	if d.isLimited(t) {
		return true
	}
	var parts []types.Type
	if named, ok := t.(*types.Named); ok { // atomic.Pointer[Sender]
		parts = slices.Collect(named.TypeArgs().Types())
	}
	switch u := t.Underlying().(type) {
	case *types.Signature:
		for result := range u.Results().Variables() {
			parts = append(parts, result.Type())
		}
	case *types.Struct:
		if name := source.TypeName(t); name == nil || name.Pkg() == d.home {
			for f := range u.Fields() {
				parts = append(parts, f.Type())
			}
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, maps, channels
		parts = append(parts, u.Elem())
	}
	return slices.ContainsFunc(parts, d.holds)
}
