package collect

import "go/types"

// ofFields collects the fields of a struct that are funcs.
func (c *methods) ofFields() {
	t, before := c.object.Type().Underlying().(*types.Struct), len(c.errs)
	for f := range t.Fields() {
		d, known := c.declaredAt[f.Pos()]
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
