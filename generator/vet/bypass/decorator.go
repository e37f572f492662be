package bypass

import (
	"go/types"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// decorates reports whether values of type t hold a value through which they can call a limited method of iface, because that value
// may be the wrapper. Such a value is an interface with the method, a func with its signature, a func that returns one of these, or
// a generated wrapper. decorates looks at fields and elements at any depth, but only inside types that belong to the package of t or
// have such a method.
func (c *checker) decorates(t, iface types.Type, l *limited) bool {
	var methods []*types.Func
	for m := range iface.Underlying().(*types.Interface).Methods() {
		if l.covers(m.Name()) {
			methods = append(methods, m)
		}
	}
	d := decorator{checker: c, methods: methods, seen: map[string]bool{}}
	if name := source.TypeName(t); name != nil {
		d.home = name.Pkg()
	}
	return d.holds(t)
}

// decorator is one call of decorates.
type decorator struct {
	*checker
	methods []*types.Func // the limited methods of the interface
	home    *types.Package
	seen    map[string]bool
}

func (d *decorator) holds(t types.Type) bool {
	t = types.Unalias(t)
	if d.seen[t.String()] {
		return false
	}
	d.seen[t.String()] = true
	if named, ok := t.(*types.Named); ok {
		for arg := range named.TypeArgs().Types() { // atomic.Pointer[Sender]
			if d.holds(arg) {
				return true
			}
		}
		if d.wrappers[named.Obj()] {
			return d.reaches(types.NewPointer(t))
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Interface:
		return d.reaches(t)
	case *types.Signature:
		return d.isFunc(u)
	case *types.Struct:
		if name := source.TypeName(t); name != nil && name.Pkg() != d.home && !d.reaches(types.NewPointer(t)) {
			return false
		}
		for f := range u.Fields() {
			if d.holds(f.Type()) {
				return true
			}
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, maps, channels
		return d.holds(u.Elem())
	}
	return false
}

// reaches reports whether values of the type t have one of the methods.
func (d *decorator) reaches(t types.Type) bool {
	for _, m := range d.methods {
		object, _, _ := types.LookupFieldOrMethod(t, true, m.Pkg(), m.Name())
		if object != nil && types.Identical(object.Type(), m.Type()) {
			return true
		}
	}
	return false
}

// isFunc reports whether a func has the signature of one of the methods, or returns a value that decorates.
func (d *decorator) isFunc(sig *types.Signature) bool {
	for _, m := range d.methods {
		if types.Identical(sig, m.Type()) {
			return true
		}
	}
	for result := range sig.Results().Variables() {
		if d.holds(result.Type()) {
			return true
		}
	}
	return false
}
