package collect

import (
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// wrapper collects a type declaration. It returns nil if the type has no directives, or if it cannot be wrapped.
func (c *collector) wrapper(s *typeSource) *model.Wrapper {
	before := len(c.found)
	g := c.group(s.doc)
	onFields, onMethods := c.annotated(s.fields), c.annotated(s.methods)
	if len(g.All) == 0 && onFields == nil && onMethods == nil || !c.canName(s) {
		return nil
	}
	w := &model.Wrapper{
		Pos: s.spec.Name.Pos(), Object: s.object, Kind: kindOf(s, onFields, onMethods), TypeParams: namedParams(s.object, c.block.declared),
		Doc: s.doc.Text(),
	}
	if !c.canWrap(w, s) {
		return nil
	}
	if !g.Guard.IsZero() {
		if !c.canGuard(w, s, g) {
			return nil
		}
		w.Kind = model.Guard
	} else if w.Kind == model.Concrete && c.missesGuard(s) {
		return nil
	}
	if w.Kind != model.Interface && onFields != nil && onMethods != nil {
		c.found.Add(first(c.group(onFields.doc)), "%s has directives on its methods, so they cannot go on its fields, too", w.Object.Name())
		return nil
	}
	c.fill(w, s, g, before)
	return w
}

// canName reports whether other declarations of the package can name s and the constraints of its type parameters.
func (c *collector) canName(s *typeSource) bool {
	name := s.spec.Name
	switch {
	case name.Name == "_":
		c.found.Add(name.Pos(), "a type without a name cannot be wrapped")
		return false
	case s.object == nil:
		c.found.Add(name.Pos(), "%s is declared twice", name.Name)
		return false
	}
	for p := range typeParams(s.object.Type()).TypeParams() {
		if !c.valid(p.Constraint(), s.spec) {
			return false
		}
	}
	return true
}

// canWrap reports whether s can be wrapped: it must be valid, and not a constraint. An invalid interface is reported, but passes,
// so that the errors in its methods are reported too.
func (c *collector) canWrap(w *model.Wrapper, s *typeSource) bool {
	under := s.object.Type().Underlying()
	iface, ok := under.(*types.Interface)
	switch {
	case !ok:
		return w.Kind != model.Func || c.valid(under, s.spec)
	case isUnknown(iface) && !c.valid(iface, s.spec):
		return true
	case !iface.IsMethodSet():
		c.found.Add(w.Pos, "%s is a constraint: there are no values of it to wrap", w.Object.Name())
		return false
	}
	return true
}

// canGuard reports whether s can have a guard.
func (c *collector) canGuard(w *model.Wrapper, s *typeSource, g annotations.Group) bool {
	_, isStruct := s.object.Type().Underlying().(*types.Struct)
	switch pos := g.Guard.Verb.Pos; {
	case w.Kind == model.Interface:
		c.found.Add(pos, "guard goes above a struct type, whose methods call the guard; an interface gets a wrapper: write wrap")
	case !isStruct || s.spec.Assign.IsValid():
		c.found.Add(pos, "guard goes above a struct type that is declared here, whose methods call the guard")
	case w.Kind == model.Fields:
		c.found.Add(pos, "guard is for the methods of %s, which call the guard; to limit its funcs, write wrap", w.Object.Name())
	case !g.Wrap.IsZero():
		c.found.Add(g.Wrap.Verb.Pos, "guard and wrap do not go together: a type has a guard, which its methods call, or a wrapper around it")
	default:
		return true
	}
	return false
}

// kindOf returns the kind of wrapper for a type. Directives above a struct are about its exported methods. They are about its func fields
// if it has no such methods, or if only func fields have directives of their own.
func kindOf(s *typeSource, onFields, onMethods *declaration) model.Kind {
	switch u := s.object.Type().Underlying().(type) {
	case *types.Interface:
		return model.Interface
	case *types.Signature:
		if onMethods == nil {
			return model.Func
		}
	case *types.Struct:
		if onMethods == nil && (onFields != nil || len(methodsOf(s.object.Type(), true)) == 0 && hasFuncs(u)) {
			return model.Fields
		}
	}
	return model.Concrete
}

// fill completes the wrapper w of s, which has the directives g. The errors of s begin at index before.
func (c *collector) fill(w *model.Wrapper, s *typeSource, g annotations.Group, before int) {
	w.Scope = scopeOf(c.pkg) + "." + w.Object.Name()
	w.Elsewhere = c.block.methods[w.Object.Name()]
	if !g.Skip.IsZero() {
		c.found.Add(g.Skip.Verb.Pos, "skip belongs above a method; it says that the rules of the type do not apply there")
	}
	if !g.Plain.IsZero() && w.Kind != model.Func {
		c.found.Add(g.Plain.Verb.Pos, "plain belongs above a method; it says that its results stay without limits")
	}
	options := g.Options()
	c.name(w, g, s.home)
	has := func(name string) bool {
		own, _, _ := types.LookupFieldOrMethod(s.object.Type(), true, c.pkg.Types, name)
		return own != nil
	}
	w.OwnRateLimits, w.OwnUnlimited = has("RateLimits"), has("Unlimited")
	c.zone(options)
	m := &methods{collector: c, typeSource: s, of: w, options: options, faulty: c.reportFaults(s, w.Kind)}
	if !m.namesAreFree() {
		return
	}
	m.collect(g)
	isBad := func(r annotations.Rule) bool { return r.Bad }
	if !c.found[before:].HasErrors() && !m.faulty && !slices.ContainsFunc(g.Rules, isBad) { // otherwise it may report consequences
		m.reportIneffective(g)
	}
}
