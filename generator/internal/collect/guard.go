package collect

import (
	"go/ast"
	"go/token"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// ofGuard collects the methods that a type declares itself. A guard has a method for each that has rules.
func (c *methods) ofGuard() {
	var order []string
	own := map[token.Pos]declaration{}
	for _, d := range c.methods {
		if !c.onlyInTests(d) {
			order, own[d.name.Pos()] = append(order, d.name.Name), d
		} else if g := c.group(d.doc); len(g.All) > 0 {
			c.found.Add(first(g), "%s is declared in a test, but the guard is not", d.name.Name)
		}
	}
	found := append(methodsOf(c.self(), true), methodsOf(c.self(), false)...)
	sortAsWritten(found, order)
	for _, f := range found {
		if d, ok := own[f.Pos()]; ok {
			c.add(f.Name(), f.Signature(), []declaration{d})
		}
	}
}

// warnOfUnnamed warns if the func of a guard's method cannot get pointers to the results, because these have no names.
func (c *methods) warnOfUnnamed(m *model.Method) {
	if c.of.Kind != model.Guard || !m.LooksBack() {
		return
	}
	for v := range m.Signature.Results().Variables() {
		if v.Name() == "" || v.Name() == "_" {
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
