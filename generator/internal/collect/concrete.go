package collect

import (
	"go/types"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// ofConcrete collects methods of a type and of the pointer to it: first its own methods, then promoted ones. A wrapper has the exported
// methods, a guard those that the type declares itself.
func (c *methods) ofConcrete() {
	isGuard, what := c.of.Kind == model.Guard, "wrapper"
	if isGuard {
		what = "guard"
	} else if !c.embedsKnown() {
		return
	}
	var order []string
	for _, d := range c.methods {
		order = append(order, d.name.Name)
		switch g := c.group(d.doc); {
		case len(g.All) == 0:
		case !isGuard && !d.name.IsExported():
			c.found.Add(first(g), "%s is not exported: the wrapper has exported methods only", d.name.Name)
		case c.onlyInTests(d):
			c.found.Add(first(g), "%s is declared in a test, but the %s is not", d.name.Name, what)
		}
	}
	found, unexported := methodsOf(c.self(), true), methodsOf(c.self(), false)
	if isGuard {
		found = append(found, unexported...)
	} else {
		c.embed(unexported) // so that the wrapper can be registered where the type can, such as with gRPC
	}
	sortAsWritten(found, order)
	for _, f := range found {
		d, known := c.membersAt[f.Pos()]
		switch {
		case known && c.onlyInTests(d), isGuard && d.owner != c.object:
		case known:
			c.addMethod(f.Name(), f.Signature(), []declaration{d})
		default:
			c.addMethod(f.Name(), f.Signature(), nil)
		}
	}
	if len(found) == 0 && !isGuard && !c.faulty {
		c.found.Add(c.of.Pos, "%s has no exported methods, so there is nothing to limit", c.object.Name())
	}
}

// onlyInTests reports whether a method is declared in a test file, but the wrapper is not.
func (c *methods) onlyInTests(d declaration) bool { return d.file.IsTest() && !c.home.IsTest() }

// methodsOf returns the exported or the unexported methods of the pointer to a type.
func methodsOf(t types.Type, exported bool) []*types.Func {
	var found []*types.Func
	for s := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if f := s.Obj().(*types.Func); f.Exported() == exported {
			found = append(found, f)
		}
	}
	return found
}

// embedsKnown reports whether the types of all embedded fields are valid, as they may promote methods. Other fields may have types
// that are still to be generated.
func (c *methods) embedsKnown() bool {
	t, ok := c.object.Type().Underlying().(*types.Struct)
	if !ok {
		return c.valid(c.object.Type().Underlying(), c.spec)
	}
	for f := range t.Fields() {
		if f.Embedded() && !c.valid(f.Type(), c.spec) {
			return false
		}
	}
	return true
}
