package collect

import (
	"go/types"
	"slices"
	"strings"
)

// ofFields collects the func fields of a struct.
func (c *methods) ofFields() {
	t, before := c.object.Type().Underlying().(*types.Struct), len(c.found)
	for f := range t.Fields() {
		d, known := c.membersAt[f.Pos()]
		sig, ok := f.Type().Underlying().(*types.Signature)
		g := c.group(d.doc)
		switch {
		case f.Embedded():
		case len(g.All) > 0 && !ok && f.Type() != types.Typ[types.Invalid]:
			c.found.Add(first(g), "%s is not a func, so nothing can call it", f.Name())
		case !known: // a field of another package's struct
			if ok && (f.Exported() || f.Pkg() == c.pkg.Types) {
				c.addMethod(f.Name(), sig, nil)
			}
		case ok && f.Name() != "_":
			c.addMethod(f.Name(), sig, []declaration{d})
		case len(g.All) > 0:
			c.valid(f.Type(), d.node)
		}
	}
	if len(c.of.Methods) == 0 && !c.found[before:].HasErrors() {
		c.found.Add(c.of.Pos, "%s has neither exported methods nor funcs, so there is nothing to limit", c.object.Name())
	}
	if len(c.of.Rules) > 0 {
		c.warnOfPromoted()
	}
	c.noLock(t)
}

// warnOfPromoted warns of the func fields of embedded structs. The rules of the type do not apply to them, as other structs may
// share them.
func (c *methods) warnOfPromoted() {
	for _, at := range c.embeds {
		embedded := c.pkg.Named(at.Type)
		if embedded == nil {
			continue
		}
		var found []string
		for _, name := range funcsIn(embedded.Type(), map[types.Type]bool{}) {
			o, path, _ := types.LookupFieldOrMethod(c.object.Type(), true, c.pkg.Types, name)
			if o != nil && len(path) > 1 && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		if len(found) > 0 && !c.skips(at) {
			c.found.Warn(at.Type.Pos(), "the rule does not apply to %s of the embedded %s; if that is intended, write //ratelimit:skip here",
				strings.Join(found, ", "), types.ExprString(at.Type))
		}
	}
}

// funcsIn returns the names of the func fields of a struct, including promoted ones.
func funcsIn(t types.Type, seen map[types.Type]bool) (names []string) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || seen[t] {
		return nil
	}
	seen[t] = true
	for f := range s.Fields() {
		if _, isFunc := f.Type().Underlying().(*types.Signature); isFunc && !f.Embedded() {
			names = append(names, f.Name())
		} else if f.Embedded() {
			names = append(names, funcsIn(f.Type(), seen)...)
		}
	}
	return names
}

// noLock reports a struct that must not be copied because it holds a lock.
func (c *methods) noLock(t *types.Struct) {
	for f := range t.Fields() {
		if holdsLock(f.Type()) {
			c.found.Add(c.of.Pos, "%s holds a lock in %s, so it cannot be copied", c.object.Name(), f.Name())
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
