package collect

import (
	"go/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// warnOfUnnamed warns if the func of a guard's method cannot get pointers to the results, because these have no names.
func (c *methods) warnOfUnnamed(m *model.Method) {
	if c.of.Kind != model.Guard || !m.LooksBack() {
		return
	}
	for v := range m.Signature.Results().Variables() {
		if names.IsBlank(v.Name()) {
			c.found.Warn(m.Pos, "the guard of %s gives a func that takes pointers to the results, which have no names; name them", m.Name)
			return
		}
	}
}

// missesGuard reports whether a struct has a field for a guard, but no directive that makes one.
func (c *collector) missesGuard(s *typeSource) bool {
	name := source.NamesFor(s.spec.Name.Name, annotations.Group{Guard: annotations.Directive{Pos: s.spec.Pos()}}).Type
	for _, d := range s.fields {
		if f, ok := d.node.(*ast.Field); ok && source.NameOf(f.Type) == name && len(c.block.declared[name]) == 0 {
			c.found.Add(f.Type.Pos(), "there is no %s; write //ratelimit:guard above %s, so that it is generated", name, s.spec.Name.Name)
			return true
		}
	}
	return false
}
