package collect

import (
	"go/types"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// typ collects a type declaration; nil if neither it nor a part of it is annotated.
func (c *collector) typ(s *source) *model.Wrapper {
	g := c.group(s.doc)
	onFields, onMethods := c.annotated(s.fields), c.annotated(s.methods)
	if isEmpty(g) && onFields == nil && onMethods == nil {
		return nil
	}
	if s.spec.Name.Name == "_" {
		c.errorf(s.spec.Name.Pos(), "a type without a name cannot be wrapped")
		return nil
	}
	if s.object == nil {
		c.errorf(s.spec.Name.Pos(), "%s is declared twice", s.spec.Name.Name)
		return nil
	}
	for p := range typeParams(s.object.Type()).TypeParams() {
		if p.Obj().Name() == "_" {
			c.errorf(p.Obj().Pos(), "a wrapper of %s needs a name for this type parameter", s.spec.Name.Name)
			return nil
		}
		if !c.valid(p.Constraint(), s.spec) {
			return nil
		}
	}
	under := s.object.Type().Underlying()
	w := &model.Wrapper{Pos: s.spec.Name.Pos(), Object: s.object, Kind: kindOf(s, onFields, onMethods), TypeParams: typeParams(s.object.Type())}
	iface, _ := under.(*types.Interface)
	known := iface == nil || !isUnknown(iface) || c.valid(iface, s.spec) // if not, what is wrong with its methods is told, too
	switch {
	case w.Kind == model.Func && !c.valid(under, s.spec):
		return nil
	case known && iface != nil && !iface.IsMethodSet():
		c.errorf(w.Pos, "%s is a constraint, not a type of values, so that nothing can wrap it", w.Object.Name())
		return nil
	case iface == nil && onFields != nil && onMethods != nil:
		c.errorf(first(c.group(onFields.doc)), "%s has directives on its methods, so that they cannot stand on its fields, too", w.Object.Name())
		return nil
	}
	c.fill(w, s, g)
	return w
}

// kindOf says what kind of wrapper a type gets. Directives on a struct alone are about its methods, if it has any.
func kindOf(s *source, onFields, onMethods *declaration) model.Kind {
	switch u := s.object.Type().Underlying().(type) {
	case *types.Interface:
		return model.Interface
	case *types.Signature:
		if onMethods == nil {
			return model.Func
		}
	case *types.Struct:
		if onMethods == nil && (onFields != nil || len(exportedMethods(s.object)) == 0 && hasFuncs(u)) {
			return model.Fields
		}
	}
	return model.Concrete
}

// fill completes w, which stands for s and has the directives of g.
func (c *collector) fill(w *model.Wrapper, s *source, g annotations.Group) {
	var wrap annotations.Wrap
	if len(g.Wraps) > 0 {
		wrap = g.Wraps[0]
	}
	w.Scope = scopeOf(c.pkg) + "." + w.Object.Name()
	if wrap.Prefix != "" {
		w.Scope = wrap.Prefix + "." + w.Scope
	}
	for _, d := range g.Skips {
		c.errorf(d.Verb.Pos, "skip stands on a method: the rules of its type do not apply there")
	}
	c.name(w, wrap)
	c.zone(wrap)
	m := &methods{collector: c, source: s, of: w, wrap: wrap}
	if !m.canMean() {
		return
	}
	if w.Kind == model.Func {
		m.function(g)
		m.reportIdle(g)
		return
	}
	for _, d := range g.Fallbacks {
		c.errorf(d.Verb.Pos, "fallback stands on a method: it is called in that one's place")
	}
	w.Rules = c.rules(g.Rules, w.Scope, wrap, true)
	switch w.Kind {
	case model.Interface:
		m.warnOfEmbedded()
		m.ofInterface()
	case model.Concrete:
		m.warnOfEmbedded()
		m.ofConcrete()
	case model.Fields:
		m.ofFields()
	}
	m.reportIdle(g)
}
