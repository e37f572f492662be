package collect

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/key"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// declaration is where the method of an interface is written, and in which of the interfaces of this package.
type declaration struct {
	field *ast.Field
	owner *types.TypeName
}

// methods collects the methods of w: first those that its declaration spells out, then the promoted ones.
func (c *collector) methods(w *model.Wrapper, spec *ast.TypeSpec, wrap annotations.Wrap) {
	declared, order := c.declarations(spec, w.Object)
	var methods []*types.Func
	for f := range w.Interface.Methods() {
		methods = append(methods, f)
	}
	slices.SortStableFunc(methods, func(a, b *types.Func) int { return rank(order, a) - rank(order, b) })
	var spared []string
	for _, f := range methods {
		m := c.method(w, f, declared[f.Name()], spec, wrap)
		if m == nil {
			continue
		}
		if m.Spared {
			spared = append(spared, m.Name)
		}
		w.Methods = append(w.Methods, m)
	}
	if len(spared) > 0 && len(w.Rules) > 0 {
		c.warnings = append(c.warnings, annotations.Error{
			Pos: w.Rules[0].Verb.Pos,
			Msg: "the rule does not reach " + strings.Join(spared, ", ") + ": without an error result nothing can be refused; //ratelimit:skip says that this is meant",
		})
	}
}

// rank orders methods as they are written; those from other packages come last.
func rank(order []string, f *types.Func) int {
	if i := slices.Index(order, f.Name()); i >= 0 {
		return i
	}
	return len(order)
}

// declarations finds the syntax of an interface's methods, and the order of their names. A method that the interface itself
// spells out hides what it embeds: its directives are the ones that count.
func (c *collector) declarations(spec *ast.TypeSpec, owner *types.TypeName) (map[string][]declaration, []string) {
	found, own := map[string][]declaration{}, map[string]bool{}
	var order []string
	iface, ok := spec.Type.(*ast.InterfaceType)
	if !ok { // type A B: what B promotes
		if o := c.localType(spec.Type); o != nil {
			return c.declarations(c.specs[o], o)
		}
		return found, nil
	}
	for _, f := range iface.Methods.List {
		for _, n := range f.Names {
			found[n.Name], own[n.Name] = []declaration{{f, owner}}, true
			order = append(order, n.Name)
		}
	}
	for _, f := range iface.Methods.List {
		o := c.localType(f.Type)
		if len(f.Names) > 0 || o == nil || o == owner {
			continue
		}
		promoted, names := c.declarations(c.specs[o], o)
		order = append(order, names...)
		for _, name := range names {
			if !own[name] {
				found[name] = append(found[name], promoted[name]...)
			}
		}
	}
	return found, order
}

// localType returns the type of this package that an expression names, with or without type arguments.
func (c *collector) localType(e ast.Expr) *types.TypeName {
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	case *ast.ParenExpr:
		return c.localType(x.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	o, _ := c.pkg.Types.Scope().Lookup(id.Name).(*types.TypeName)
	if c.specs[o] == nil {
		return nil
	}
	return o
}

// method makes the model of a method; nil if it cannot be written.
func (c *collector) method(w *model.Wrapper, f *types.Func, declared []declaration, spec *ast.TypeSpec, wrap annotations.Wrap) *model.Method {
	m := &model.Method{Pos: w.Pos, Name: f.Name(), Signature: f.Signature(), Scope: w.Scope + "." + f.Name(), Context: -1, Error: -1}
	node := ast.Node(spec.Name)
	if len(declared) > 0 {
		node = declared[0].field
		m.Pos, m.Doc = declared[0].field.Pos(), declared[0].field.Doc.Text()
	}
	if !c.valid(m.Signature, node) || !c.expressible(w, m, f) {
		return nil
	}
	c.describe(m)
	for _, d := range declared {
		c.apply(w, m, d, wrap)
	}
	if m.Error < 0 {
		m.Spared = len(w.Rules) > 0 && !m.Skipped
	} else if !m.Skipped {
		m.Rules = append(m.Rules, w.Rules...)
	}
	c.twins(m.Rules)
	return m
}

// apply gives m the directives of one of its declarations. The rules of a promoted method limit it in each type that promotes
// it; what its own type shares with skip is that type's affair.
func (c *collector) apply(w *model.Wrapper, m *model.Method, d declaration, wrap annotations.Wrap) {
	g := c.group(d.field.Doc)
	for _, wrap := range g.Wraps {
		c.errorf(wrap.Verb.Pos, "wrap stands on a type")
	}
	if d.owner == w.Object {
		m.Skipped = len(g.Skips) > 0
	}
	if len(g.Rules) > 0 && m.Error < 0 {
		c.errorf(g.Rules[0].Verb.Pos, "%s returns no error, so that its calls cannot be refused", m.Name)
		return
	}
	m.Rules = append(m.Rules, c.rules(g.Rules, m.Scope, wrap, false)...)
}

// describe finds out what is special about the parameters and results of m.
func (c *collector) describe(m *model.Method) {
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
	return iface.NumMethods() > 0 && types.AssignableTo(types.Universe.Lookup("error").Type(), t)
}
