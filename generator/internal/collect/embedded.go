package collect

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// warnOfEmbedded warns of rules on types that the type embeds or is an alias of, because its wrapper does not have these rules. It
// does not warn if the type repeats the rules, or if skip stands above the embedded type.
func (c *methods) warnOfEmbedded() {
	seen := map[*typeSource]bool{c.typeSource: true}
	var visit func(s *typeSource, at *ast.Field)
	visit = func(s *typeSource, at *ast.Field) {
		for _, e := range s.embeds {
			if s == c.typeSource {
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
			if rules := c.group(o.doc).Rules; len(rules) > 0 && !c.isMeant(at) && !c.repeats(rules) {
				c.found.Warn(at.Type.Pos(), "the wrapper of %s does not have the rule that stands on %s, only those on its methods; "+
					"repeat it on %[1]s if it should apply, or write //ratelimit:skip here", c.object.Name(), o.spec.Name.Name)
			}
			visit(o, at)
		}
	}
	visit(c.typeSource, nil)
}

// isMeant reports whether the rules of an embedded type are left out on purpose. In a declaration such as type B A there is no
// place for skip, so rules on B are enough.
func (c *methods) isMeant(at *ast.Field) bool {
	return c.skips(at) || at.Type == ast.Unparen(c.spec.Type) && len(c.of.Rules) > 0
}

// repeats reports whether the type has each of the rules, too.
func (c *methods) repeats(rules []annotations.Rule) bool {
	own := c.group(c.doc).Rules
	return !slices.ContainsFunc(rules, func(r annotations.Rule) bool {
		return !slices.ContainsFunc(own, func(o annotations.Rule) bool { return asWritten(o) == asWritten(r) })
	})
}

// asWritten returns the arguments of a rule as sorted text.
func asWritten(r annotations.Rule) string {
	var args []string
	for _, a := range r.Args {
		args = append(args, a.Name.Value+"="+strconv.Quote(a.Value.Value))
	}
	slices.Sort(args)
	return strings.Join(args, " ")
}

// warnOfImported warns of the rules of a type of another package. They cannot be copied, as their expressions belong to that
// package.
func (c *methods) warnOfImported(e, at *ast.Field) {
	if o := c.pkg.Named(e.Type); o != nil && source.IsLimited(c.fset, o) && !c.isMeant(at) {
		c.found.Warn(at.Type.Pos(), "the wrapper of %s does not have the rules of %s, which count in its own package; "+
			"repeat on %[1]s the rules that should apply, and write //ratelimit:skip here", c.object.Name(), types.ExprString(e.Type))
	}
}

// skips reports whether skip stands above an embedded type. It reports any other directive there as an error.
func (c *methods) skips(at *ast.Field) bool {
	g := c.group(at.Doc)
	if i := slices.IndexFunc(g.All, func(d annotations.Directive) bool { return d.Verb.Value != "skip" }); i >= 0 {
		c.found.Add(g.All[i].Verb.Pos, "only skip may stand above an embedded type; it says that the rules of that type do not apply here")
	}
	return !g.Skip.IsZero()
}

// declarations returns the declarations of the methods of an interface by name, and the names in source order. If the interface
// declares a method itself, only that declaration counts, and not those of embedded interfaces. The interfaces in above embed s.
func (c *collector) declarations(s *typeSource, above ...*typeSource) (map[string][]declaration, []string) {
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

// merged adds to a list the declarations that it does not have yet.
func merged(list, more []declaration) []declaration {
	for _, d := range more {
		if !slices.ContainsFunc(list, func(o declaration) bool { return o.name == d.name }) {
			list = append(list, d)
		}
	}
	return list
}
