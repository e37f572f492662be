package collect

import (
	"go/types"
	"slices"
)

// ofConcrete collects the exported methods of a type and of the pointer to it: first those that are declared for it, then the
// promoted ones.
func (c *methods) ofConcrete() {
	if !c.embedsKnown() {
		return
	}
	var order []string
	for _, d := range c.source.methods {
		order = append(order, d.name.Name)
		if g := c.group(d.doc); !isEmpty(g) && !d.name.IsExported() {
			c.errorf(first(g), "%s is not exported: the wrapper has exported methods only", d.name.Name)
		} else if !isEmpty(g) && c.onlyInTests(d) {
			c.errorf(first(g), "%s is declared in a test, but the wrapper is not", d.name.Name)
		}
	}
	found := exportedMethods(c.object)
	slices.SortStableFunc(found, func(a, b *types.Func) int { return rank(order, a) - rank(order, b) })
	for _, f := range found {
		var declared []declaration
		if d, ok := c.collector.methods[f.Pos()]; ok {
			declared = []declaration{d}
			if c.onlyInTests(d) {
				continue
			}
		}
		c.add(f.Name(), f.Signature(), declared)
	}
	if len(found) == 0 {
		c.errorf(c.of.Pos, "%s has no exported methods, so that there is nothing to limit", c.object.Name())
	}
}

// onlyInTests reports whether a method is there in tests alone, but the wrapper always.
func (c *methods) onlyInTests(d declaration) bool { return d.file.IsTest() && !c.home.IsTest() }

// exportedMethods returns the exported methods of the pointer to a type, with the type's own type parameters.
func exportedMethods(o *types.TypeName) []*types.Func {
	var found []*types.Func
	for s := range types.NewMethodSet(types.NewPointer(self(o))).Methods() {
		if f := s.Obj().(*types.Func); f.Exported() {
			found = append(found, f)
		}
	}
	return found
}

// self is the type as its own methods see it, but with the names that its declaration gives to type parameters.
func self(o *types.TypeName) types.Type {
	params := typeParams(o.Type())
	if params.Len() == 0 {
		return o.Type()
	}
	t, err := types.Instantiate(nil, o.Type(), arguments(params), false)
	if err != nil {
		return o.Type()
	}
	return t
}

// embedsKnown reports whether all is known that could promote methods. Other fields may be of types that are yet to be
// generated.
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

// ofFields collects the fields of a struct that are funcs.
func (c *methods) ofFields() {
	t, before := c.object.Type().Underlying().(*types.Struct), len(c.errs)
	for f := range t.Fields() {
		d, known := c.collector.methods[f.Pos()]
		sig, ok := f.Type().Underlying().(*types.Signature)
		g := c.group(d.doc)
		switch {
		case f.Embedded():
		case !isEmpty(g) && !ok && f.Type() != types.Typ[types.Invalid]:
			c.errorf(first(g), "%s is no func, so that nothing calls it", f.Name())
		case !known: // a field of another package's struct
			if ok && (f.Exported() || f.Pkg() == c.pkg.Types) {
				c.add(f.Name(), sig, nil)
			}
		case ok && f.Name() != "_":
			c.add(f.Name(), sig, []declaration{d})
		case !isEmpty(g):
			c.valid(f.Type(), d.node)
		}
	}
	if len(c.of.Methods) == 0 && len(c.errs) == before {
		c.errorf(c.of.Pos, "%s has neither exported methods nor funcs, so that there is nothing to limit", c.object.Name())
	}
	c.noLock(t)
}

// noLock refuses a struct that must not be copied.
func (c *methods) noLock(t *types.Struct) {
	for f := range t.Fields() {
		if holdsLock(f.Type()) {
			c.errorf(c.of.Pos, "%s holds a lock in %s, so that it cannot be copied", c.object.Name(), f.Name())
		}
	}
}

func holdsLock(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if holdsLock(f.Type()) {
				return true
			}
		}
	case *types.Array:
		return holdsLock(u.Elem())
	case *types.Interface:
		return false
	}
	pointer := types.NewMethodSet(types.NewPointer(t))
	return pointer.Lookup(nil, "Lock") != nil && pointer.Lookup(nil, "Unlock") != nil
}

func hasFuncs(t *types.Struct) bool {
	for f := range t.Fields() {
		if _, ok := f.Type().Underlying().(*types.Signature); ok && !f.Embedded() {
			return true
		}
	}
	return false
}
