package collect

import (
	"go/ast"
	"go/token"
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
	return slices.ContainsFunc(c.pkg.StandIns, func(name string) bool { return slices.Contains(words, name) })
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

// addMentioned adds the names of the types that the parts mention. The type checker reports some errors at the name of a type.
func (x *extent) addMentioned() {
	mentioned := map[string]bool{}
	for _, part := range x.parts {
		ast.Inspect(part, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && x.has(id.Pos()) {
				mentioned[id.Name] = true
			}
			return true
		})
	}
	for _, o := range x.sources {
		if mentioned[o.spec.Name.Name] {
			x.parts = append(x.parts, o.spec.Name)
		}
	}
}
