package collect

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// methods collects the methods of one type.
type methods struct {
	*collector
	*typeSource
	of      *model.Wrapper
	options annotations.Directive // wrap or guard

	faulty bool // the type checker has found errors in the type, so that methods may be missing
}

// collect adds the methods to the wrapper. The directives above the type are g.
func (c *methods) collect(g annotations.Group) {
	if c.of.Kind == model.Func {
		c.function()
		return
	}
	if !g.Fallback.IsZero() {
		c.found.Add(g.Fallback.Verb.Pos, "fallback belongs above a method; it names the function to call instead of the method")
	}
	c.of.Rules = c.rules(g.Rules, c.of.Scope, c.options, true)
	if c.of.Kind == model.Interface || c.of.Kind == model.Concrete {
		c.warnOfEmbedded()
	}
	switch c.of.Kind {
	case model.Interface:
		c.ofInterface()
	case model.Fields:
		c.ofFields()
	default:
		c.ofConcrete()
	}
	c.setOwnContext()
}

// setOwnContext lets the method Context of the wrapped value serve where no parameter has a context, unless that method has rules itself.
func (c *methods) setOwnContext() {
	i := slices.IndexFunc(c.of.Methods, func(m *model.Method) bool { return m.Name == "Context" })
	if i < 0 || len(c.of.Methods[i].Rules) > 0 || c.of.Kind != model.Interface && c.of.Kind != model.Concrete {
		return
	}
	of := c.object.Type()
	if c.of.Kind == model.Concrete {
		of = types.NewPointer(of)
	}
	for _, m := range c.of.Methods {
		if m.Context < 0 {
			m.OwnContext = expr.ContextOf(of)
		}
	}
}

// function collects a func type as a single method, which has the directives of the type.
func (c *methods) function() {
	own := []declaration{{name: c.spec.Name, node: c.spec.Type, doc: c.doc, owner: c.object, file: c.typeSource.file}}
	c.addMethod(c.object.Name(), c.object.Type().Underlying().(*types.Signature), own)
}

// addMethod adds a method to the wrapper, unless generated code cannot name the types in its signature.
func (c *methods) addMethod(name string, sig *types.Signature, declarations []declaration) {
	scope := c.of.Scope
	if c.of.Kind != model.Func {
		scope += "." + name
	}
	m := &model.Method{Pos: c.of.Pos, Name: name, Signature: sig, Scope: scope, Context: -1, Error: -1}
	node := ast.Node(c.spec.Name)
	if len(declarations) > 0 {
		d := declarations[0]
		node, m.Pos, m.Doc, c.fileOf[m] = d.node, d.name.Pos(), d.doc.Text(), d.file
		if recv := sig.Recv(); recv != nil && !names.IsBlank(recv.Name()) && d.owner == c.of.Object {
			m.Receiver = &expr.Param{Name: recv.Name(), Type: types.NewPointer(c.self())}
		}
	}
	if !c.valid(sig, node) || !c.expressible(m) {
		return
	}
	describe(m)
	c.direct(m, declarations)
	if i := slices.IndexFunc(m.Params, isPointerToContext); i >= 0 && m.Context < 0 && len(m.Rules) > 0 {
		c.found.Add(m.Pos, "the parameter %s of %s is a *context.Context, which is no context; make it a context.Context", m.Params[i].Name, m.Name)
		return
	}
	c.warnOfMessages(m)
	c.same(m.Rules, "lease", "", func(r *model.Rule) any { return r.Declared.Lease })
	c.setHold(m)
	c.warnOfUnnamed(m)
	if c.of.Kind != model.Guard || len(m.Rules) > 0 {
		c.of.Methods = append(c.of.Methods, m)
	}
}

// direct gives m the directives of its declarations, and the rules of its type.
func (c *methods) direct(m *model.Method, declarations []declaration) {
	spare := m.Error < 0 && c.of.Kind != model.Guard
	var skip annotations.Directive
	m.Promoted = true
	for _, d := range declarations {
		g := c.group(d.doc)
		spare = spare && g.Fallback.IsZero()
		m.Promoted = m.Promoted && d.owner != c.of.Object
		if d.owner == c.of.Object && c.of.Kind != model.Func { // the skip of another type is about the rules of that type
			skip = g.Skip
		}
		if m.Plain.IsZero() {
			m.Plain = g.Plain
		}
		c.apply(m, g)
	}
	m.Skipped = !skip.IsZero()
	switch {
	case m.Skipped, c.of.Kind == model.Guard && !token.IsExported(m.Name):
	case spare:
		m.Spared = len(c.of.Rules) > 0
	default:
		m.Rules = append(m.Rules, c.of.Rules...)
	}
	if m.Skipped && len(c.group(c.doc).Rules) == 0 {
		c.found.Add(skip.Verb.Pos, "%s has no rules that could be skipped", c.object.Name())
	}
	if m.Fallback != nil && len(m.Rules) == 0 {
		c.found.Add(m.Fallback.Verb.Pos, "no rule refuses calls of %s, so its fallback is never called", m.Name)
	}
}

// warnOfMessages warns of messages that nobody gets, because the fallback does not take the error.
func (c *methods) warnOfMessages(m *model.Method) {
	for _, r := range m.Rules {
		if arg, ok := r.Arg("message"); ok && !r.OfType && m.DropsMessages() {
			c.found.Warn(arg.Value.Pos, "message: nobody sees it, since the fallback %s takes no error", m.Fallback.Func.Value)
		}
	}
}

// same reports a rule that has another value of an argument than the others, and whether all have the same. After "rules of a method" the
// message says which rules these are, as in " that count calls that run".
func (c *methods) same(rules []*model.Rule, argument, of string, value func(*model.Rule) any) bool {
	for _, r := range rules {
		for _, other := range rules {
			if arg, ok := r.Arg(argument); ok && value(r) != value(other) {
				c.found.Add(arg.Value.Pos, "%s: the rule of %s has another %[1]s, or none; write the same %[1]s= on all rules of a method%[3]s, or on none",
					argument, annotations.Line(c.fset, other.Pos, r.Pos), of)
				return false
			}
		}
	}
	return true
}

// apply gives m the directives of one of its declarations. The rules of a promoted method apply in every type that promotes it.
func (c *methods) apply(m *model.Method, g annotations.Group) {
	if options := g.Options(); c.of.Kind != model.Func && !options.IsZero() {
		c.found.Add(options.Verb.Pos, "%s belongs above a type", options.Verb.Value)
	}
	isGuard := c.of.Kind == model.Guard
	if isGuard && !g.Fallback.IsZero() {
		c.found.Add(g.Fallback.Verb.Pos, "fallback does not go with guard: %s calls the guard itself, and can act on its error", m.Name)
	}
	if !isGuard && m.Error < 0 && g.Fallback.IsZero() && len(g.Rules) > 0 {
		c.found.Add(g.Rules[0].Verb.Pos, "%s returns no error, so its calls cannot be refused: add an error result, or write //ratelimit:fallback NAME", m.Name)
		return
	}
	if !isGuard && !g.Fallback.IsZero() && !g.Fallback.Bad && m.Fallback == nil {
		m.Fallback = c.fallback(m, g.Fallback)
	}
	for _, r := range g.Rules {
		if arg, ok := r.Arg("refund"); ok && isGuard && m.Error < 0 && r.Text("refund") == "error" {
			c.found.Add(arg.Value.Pos, "refund: %s returns no error", m.Name)
		}
	}
	m.Rules = append(m.Rules, c.rules(g.Rules, m.Scope, c.options, false)...)
}

// reportIneffective reports a rule of the type that applies to no method, and a wrapper without rules.
func (c *methods) reportIneffective(g annotations.Group) {
	ofType, any := false, false
	for _, m := range c.of.Methods {
		for _, r := range m.Rules {
			any, ofType = true, ofType || r.OfType
		}
	}
	name := c.object.Name()
	switch {
	case len(c.of.Rules) > 0 && !ofType:
		why := "only methods that return an error can refuse calls"
		if c.of.Kind == model.Guard {
			why = "it is for the exported methods that " + name + " declares itself"
		}
		c.found.Add(c.of.Rules[0].Verb.Pos, "this rule applies to no method of %s, so it limits nothing; %s", name, why)
	case !g.Wrap.IsZero() && !any:
		c.of.Wrap = g.Wrap.Verb.Pos // handOut knows whether it hands out limited values
	case !g.Guard.IsZero() && !any:
		c.found.Add(g.Guard.Verb.Pos, "%s has no rule, so its guard would limit nothing", name)
	default:
		c.warnOfSpared()
	}
}

// warnOfSpared warns of methods to which the rules of the type do not apply because they cannot return an error. About promoted methods
// it is a note, as there is no place for skip.
func (c *methods) warnOfSpared() {
	var spared, promoted []string
	for _, m := range c.of.Methods {
		switch {
		case m.Spared && m.Promoted:
			promoted = append(promoted, m.Name)
		case m.Spared:
			spared = append(spared, m.Name)
		}
	}
	const why = "the rule does not apply to %s: only methods that return an error can refuse calls"
	if len(spared) > 0 {
		c.found.Warn(c.of.Rules[0].Verb.Pos, why+"; if that is intended, write //ratelimit:skip there", strings.Join(spared, ", "))
	}
	if len(promoted) > 0 {
		c.found.Note(c.of.Rules[0].Verb.Pos, why, strings.Join(promoted, ", "))
	}
}
