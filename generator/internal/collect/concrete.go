package collect

import "go/types"

// ofConcrete collects the exported methods of a type and of the pointer to it: first its own methods, then promoted ones.
func (c *methods) ofConcrete() {
	if !c.embedsKnown() {
		return
	}
	var order []string
	for _, d := range c.methods {
		order = append(order, d.name.Name)
		if g := c.group(d.doc); len(g.All) > 0 && !d.name.IsExported() {
			c.found.Add(first(g), "%s is not exported: the wrapper has exported methods only", d.name.Name)
		} else if len(g.All) > 0 && c.onlyInTests(d) {
			c.found.Add(first(g), "%s is declared in a test, but the wrapper is not", d.name.Name)
		}
	}
	c.embed(methodsOf(c.self(), false)) // so that the wrapper can be registered where the type can, such as with gRPC
	found := methodsOf(c.self(), true)
	sortAsWritten(found, order)
	for _, f := range found {
		var declared []declaration
		if d, ok := c.declaredAt[f.Pos()]; ok {
			declared = []declaration{d}
			if c.onlyInTests(d) {
				continue
			}
		}
		c.add(f.Name(), f.Signature(), declared)
	}
	if len(found) == 0 && !c.faulty {
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
