package collect

import (
	"go/ast"
	"go/types"
	"slices"
)

// ofInterface collects the methods of an interface: first those that its declaration spells out, then the promoted ones.
func (c *methods) ofInterface() {
	c.warnOfEmbedded()
	declared, order := c.declarations(c.source)
	var found []*types.Func
	for f := range c.object.Type().Underlying().(*types.Interface).Methods() {
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b *types.Func) int { return rank(order, a) - rank(order, b) })
	for _, f := range found {
		if !f.Exported() && f.Pkg() != c.pkg.Types {
			c.errorf(c.of.Pos, "%s cannot be implemented outside of package %s, because of its method %s", c.object.Name(), f.Pkg().Path(), f.Name())
			continue
		}
		c.add(f.Name(), f.Signature(), declared[f.Name()])
	}
}

// warnOfEmbedded tells of the rules of types that the interface embeds: its own wrapper does not have them.
func (c *methods) warnOfEmbedded() {
	c.embedded(c.source, func(at ast.Expr, o *source) {
		if len(c.group(o.doc).Rules) > 0 {
			c.warnf(at.Pos(), "the wrapper of %s does not have the rule that stands on %s, only those on its methods; repeat it on %[1]s if it is meant",
				c.object.Name(), o.spec.Name.Name)
		}
	})
}

// embedded calls f with the types of this package that an interface embeds, and with where s does so.
func (c *collector) embedded(s *source, f func(at ast.Expr, o *source)) {
	iface, ok := s.spec.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, field := range iface.Methods.List {
		if o := c.localType(field.Type); len(field.Names) == 0 && o != nil && o != s {
			f(field.Type, o)
			c.embedded(o, func(_ ast.Expr, o *source) { f(field.Type, o) })
		}
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
func (c *collector) declarations(s *source) (map[string][]declaration, []string) {
	found, own := map[string][]declaration{}, map[string]bool{}
	var order []string
	iface, ok := s.spec.Type.(*ast.InterfaceType)
	if !ok { // type A B: what B promotes
		if o := c.localType(s.spec.Type); o != nil {
			return c.declarations(o)
		}
		return found, nil
	}
	for _, d := range s.fields {
		found[d.name.Name], own[d.name.Name] = []declaration{d}, true
		order = append(order, d.name.Name)
	}
	for _, f := range iface.Methods.List {
		o := c.localType(f.Type)
		if len(f.Names) > 0 || o == nil || o == s {
			continue
		}
		promoted, names := c.declarations(o)
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
func (c *collector) localType(e ast.Expr) *source {
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	case *ast.ParenExpr:
		return c.localType(x.X)
	}
	if id, ok := e.(*ast.Ident); ok {
		return c.sourceOf(id.Name)
	}
	return nil
}
