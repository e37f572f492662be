package collect

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// reportFaults reports the type checker's errors in the declaration of an annotated type, and whether there are any. The type may
// look valid in spite of them: of two methods with one name the type checker drops one, and it accepts wrong type arguments.
func (c *collector) reportFaults(s *typeSource, kind model.Kind) (found bool) {
	x := &extent{collector: c, kind: kind, seen: map[*typeSource]bool{}}
	x.addType(s)
	x.addMentioned()
	for _, e := range c.pkg.Errors {
		if x.has(e.Pos) && !c.isOfStandIn(e.Msg) {
			c.found, found = append(c.found, e), true
		}
	}
	return found
}

// isOfStandIn reports whether a message names a type that is still to be generated, and that has no methods until then.
func (c *collector) isOfStandIn(msg string) bool {
	words := names.Words(msg)
	return slices.ContainsFunc(c.block.generated, func(name string) bool { return slices.Contains(words, name) })
}

// extent is the source of an annotated type, as far as its wrapper depends on it.
type extent struct {
	*collector
	kind     model.Kind
	seen     map[*typeSource]bool
	parts    []ast.Node
	excluded []ast.Node // nodes inside the parts that do not matter: the types of fields that are not wrapped
}

func (x *extent) has(pos token.Pos) bool {
	within := func(n ast.Node) bool { return n.Pos() <= pos && pos < n.End() }
	return slices.ContainsFunc(x.parts, within) && !slices.ContainsFunc(x.excluded, within)
}

// addType adds the declaration of s, its methods, and the types that it embeds.
func (x *extent) addType(s *typeSource) {
	if s == nil || x.seen[s] {
		return
	}
	x.seen[s] = true
	x.parts = append(x.parts, s.spec)
	if t, ok := ast.Unparen(s.spec.Type).(*ast.StructType); ok {
		for _, f := range t.Fields.List {
			if _, isFunc := f.Type.(*ast.FuncType); len(f.Names) > 0 && !(isFunc && x.kind == model.Fields) {
				x.excluded = append(x.excluded, f.Type)
			}
		}
	}
	for _, m := range s.methods {
		if m.name.IsExported() && !m.file.IsTest() && (x.kind == model.Concrete || x.kind == model.Guard) {
			x.parts = append(x.parts, m.node)
		}
	}
	for _, e := range s.embeds {
		x.addType(x.localType(e.Type))
	}
}

// addMentioned adds the names of the types that the parts mention, as the type checker reports some errors at the name of a type. It adds the
// whole declaration of an alias, of a func type, which generated code writes out, and of a type of no known kind.
func (x *extent) addMentioned() {
	mentioned := map[string]bool{}
	for i := 0; i < len(x.parts); i++ {
		ast.Inspect(x.parts[i], func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || mentioned[id.Name] || !x.has(id.Pos()) {
				return true
			}
			mentioned[id.Name] = true
			for _, o := range x.sources {
				if o.spec.Name.Name == id.Name {
					x.parts = append(x.parts, o.mentioned())
				}
			}
			return true
		})
	}
}

// mentioned returns the part of a type's declaration that matters where the type is only mentioned.
func (s *typeSource) mentioned() ast.Node {
	if s.object == nil {
		return s.spec.Name
	}
	under := s.object.Type().Underlying()
	if _, isFunc := under.(*types.Signature); isFunc || s.object.IsAlias() || under == types.Typ[types.Invalid] {
		return s.spec
	}
	return s.spec.Name
}
