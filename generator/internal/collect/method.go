package collect

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/key"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// methods collects the methods of one type.
type methods struct {
	*collector
	*source
	of   *model.Wrapper
	wrap annotations.Wrap
}

// add makes the model of a method and adds it, unless it cannot be written.
func (c *methods) add(name string, sig *types.Signature, declared []declaration) {
	if m := c.method(name, c.of.Scope+"."+name, sig, declared); m != nil {
		c.of.Methods = append(c.of.Methods, m)
	}
}

// function collects a func type, which is its own and only method. What stands on the type is about it.
func (c *methods) function(g annotations.Group) {
	sig := c.object.Type().Underlying().(*types.Signature)
	own := []declaration{{c.spec.Name, c.spec.Type, c.doc, c.object, c.source.file}}
	if m := c.method(c.object.Name(), c.of.Scope, sig, own); m != nil {
		c.of.Methods = []*model.Method{m}
	}
}

// method makes the model of a method; nil if it cannot be written.
func (c *methods) method(name, scope string, sig *types.Signature, declared []declaration) *model.Method {
	m := &model.Method{Pos: c.of.Pos, Name: name, Signature: sig, Scope: scope, Context: -1, Error: -1}
	node := ast.Node(c.spec.Name)
	if len(declared) > 0 {
		d := declared[0]
		node, m.Pos, m.Doc = d.node, d.name.Pos(), d.doc.Text()
	}
	if !c.valid(sig, node) || !c.expressible(m) {
		return nil
	}
	describe(m)
	spare := m.Error < 0
	for _, d := range declared {
		g := c.group(d.doc)
		spare = spare && len(g.Fallbacks) == 0
		c.apply(m, d, g)
	}
	switch {
	case m.Skipped:
	case spare:
		m.Spared = len(c.of.Rules) > 0
	default:
		m.Rules = append(m.Rules, c.of.Rules...)
	}
	if m.Fallback != nil && len(m.Rules) == 0 {
		c.errorf(m.Fallback.Verb.Pos, "no rule refuses calls of %s, so that its fallback is never called", m.Name)
	}
	c.twins(m.Rules)
	return m
}

// apply gives m the directives of one of its declarations. The rules of a promoted method limit it in each type that promotes
// it; what its own type shares with skip is that type's affair.
func (c *methods) apply(m *model.Method, d declaration, g annotations.Group) {
	if c.of.Kind != model.Func {
		for _, wrap := range g.Wraps {
			c.errorf(wrap.Verb.Pos, "wrap stands on a type")
		}
		if d.owner == c.of.Object {
			m.Skipped = len(g.Skips) > 0
		}
	}
	if m.Error < 0 && len(g.Fallbacks) == 0 && len(g.Rules) > 0 {
		c.errorf(g.Rules[0].Verb.Pos, "%s returns no error, so that its calls cannot be refused; a fallback can stand in for it", m.Name)
		return
	}
	for _, f := range g.Fallbacks {
		if !f.Bad && m.Fallback == nil {
			m.Fallback = c.fallback(m, f)
		}
	}
	for _, r := range g.Rules {
		if arg, ok := r.Arg("refund"); ok && m.Error < 0 && r.Refund == "error" {
			c.errorf(arg.Value.Pos, "refund: %s returns no error", m.Name)
		}
	}
	m.Rules = append(m.Rules, c.rules(g.Rules, m.Scope, c.wrap, false)...)
}

// warnOfSpared tells which methods the rules of the type do not reach.
func (c *methods) warnOfSpared() {
	var spared []string
	for _, m := range c.of.Methods {
		if m.Spared {
			spared = append(spared, m.Name)
		}
	}
	if len(spared) > 0 {
		c.warnf(c.of.Rules[0].Verb.Pos,
			"the rule does not reach %s: without an error result nothing can be refused; //ratelimit:skip says that this is meant",
			strings.Join(spared, ", "))
	}
}

// describe finds out what is special about the parameters and results of m.
func describe(m *model.Method) {
	for i := range m.Signature.Params().Len() {
		v := m.Signature.Params().At(i)
		name := v.Name()
		if name == "" || name == "_" {
			name = "arg" + strconv.Itoa(i)
		}
		m.Params = append(m.Params, key.Param{Name: name, Type: v.Type()})
		if m.Context < 0 && isContext(v.Type()) {
			m.Context = i
		}
	}
	for i := range m.Signature.Results().Len() {
		if takesError(m.Signature.Results().At(i).Type()) {
			m.Error = i
		}
	}
}

// isContext reports whether t is context.Context, by whatever name.
func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

// takesError reports whether every error can be returned as a t, and t is meant for that: any is not.
func takesError(t types.Type) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if _, isParam := types.Unalias(t).(*types.TypeParam); !ok || isParam {
		return false
	}
	return iface.NumMethods() > 0 && types.AssignableTo(errorType, t)
}

var errorType = types.Universe.Lookup("error").Type()

// isTest reports whether a position is in a test file.
func (c *collector) isTest(pos token.Pos) bool {
	return strings.HasSuffix(c.fset.File(pos).Name(), "_test.go")
}
