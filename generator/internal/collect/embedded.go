package collect

import (
	"go/ast"
	"go/types"
	"slices"
)

// warnOfEmbedded tells of the rules of types that another one embeds, or is an alias of: its own wrapper does not have them. Rules
// of its own, or skip above what it embeds, say that this is meant.
func (c *methods) warnOfEmbedded() {
	seen := map[*source]bool{c.source: true}
	var visit func(s *source, at *ast.Field)
	visit = func(s *source, at *ast.Field) {
		for _, e := range s.embeds {
			if s == c.source {
				at = e
			}
			o := c.localType(e.Type)
			if o == nil {
				c.warnOfImported(e, at)
			}
			if o == nil || seen[o] {
				continue
			}
			seen[o] = true
			if len(c.group(o.doc).Rules) > 0 && !c.skips(at) && len(c.of.Rules) == 0 {
				c.warnf(at.Type.Pos(), "the wrapper of %s does not have the rule that stands on %s, only those on its methods; "+
					"repeat it on %[1]s if it is meant, or say //ratelimit:skip here", c.object.Name(), o.spec.Name.Name)
			}
			visit(o, at)
		}
	}
	visit(c.source, nil)
}

// warnOfImported tells of the rules that a type of another package has there. What their expressions mean is known there alone.
func (c *methods) warnOfImported(e, at *ast.Field) {
	if o := c.importedType(e.Type); o != nil && c.isLimited(o) && !c.skips(at) && len(c.of.Rules) == 0 {
		c.warnf(at.Type.Pos(), "the wrapper of %s does not have the rules of %s, which count in its own package; "+
			"repeat on %[1]s what is meant, or say //ratelimit:skip here", c.object.Name(), types.ExprString(e.Type))
	}
}

// skips reports whether skip stands above what is embedded. No other directive may.
func (c *methods) skips(at *ast.Field) bool {
	g := c.group(at.Doc)
	if !isEmpty(g) && len(g.Rules)+len(g.Wraps)+len(g.Fallbacks) > 0 {
		g.Skips = nil
		c.errorf(first(g), "above what is embedded only skip may stand: the rules of that type do not apply here")
	}
	return len(g.Skips) > 0
}

// declarations finds the syntax of an interface's methods, and the order of their names. A method that the interface itself
// spells out hides what it embeds: its directives are the ones that count. Above are the interfaces that embed s.
func (c *collector) declarations(s *source, above ...*source) (map[string][]declaration, []string) {
	found, own := map[string][]declaration{}, map[string]bool{}
	var order []string
	for _, d := range s.fields {
		found[d.name.Name], own[d.name.Name] = append(found[d.name.Name], d), true
		order = append(order, d.name.Name)
	}
	above = append(above, s)
	for _, e := range s.embeds {
		o := c.localType(e.Type)
		if o == nil || slices.Contains(above, o) {
			continue
		}
		promoted, names := c.declarations(o, above...)
		order = append(order, names...)
		for name, all := range promoted {
			if !own[name] {
				found[name] = merged(found[name], all)
			}
		}
	}
	return found, order
}

// merged adds declarations to a list, but for those that it has already.
func merged(list, more []declaration) []declaration {
	for _, d := range more {
		if !slices.ContainsFunc(list, func(o declaration) bool { return o.name == d.name }) {
			list = append(list, d)
		}
	}
	return list
}
