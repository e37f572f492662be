package doubt

import (
	"cmp"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// Count describes the count of a rule, to find rules of other packages that share it.
type Count struct {
	pkg    string // the path of the package
	name   string
	named  bool   // the directive has a name
	twin   bool   // an error was reported already, as another rule of the method shares the count
	state  string // the key of the count in the store, without prefix and subject
	window string
	key    string    // the template
	shape  string    // of the key, as returned by shape
	limit  int64     // -1 if it is not constant
	rule   token.Pos // the position of the directive
	at     token.Pos // the position of the name, or of the verb
}

// counts returns the counts of the rules of a package in source order. A rule of a type has one.
func (a *analysis) counts(pkg *model.Package) []Count {
	var found []Count
	seen := map[token.Pos]bool{}
	for _, m := range pkg.Methods() {
		for _, r := range m.Rules {
			if seen[r.Pos] {
				continue
			}
			seen[r.Pos] = true
			limit, known := limitOf(r)
			if !known {
				limit = -1
			}
			named := r.Rule.Text("name") != ""
			at := r.Verb.Pos
			if named {
				at = r.At("name")
			}
			found = append(found, Count{
				pkg: pkg.Types.Path(), name: r.Declared.Name, named: named, twin: a.twin[r.Pos],
				state:  key.State("", r.Declared.Name, "", key.Tag(r.Declared.Name, m.Scope, r.Declared.Window(), r.Declared.Key)),
				window: r.Declared.Window(), key: r.Key.Value, shape: shape(r), limit: limit, rule: r.Pos, at: at,
			})
		}
	}
	slices.SortStableFunc(found, func(a, b Count) int { return cmp.Compare(a.rule, b.rule) })
	return found
}

// last matches the last word of an expression, such as Phone in msg.Phone.
var last = regexp.MustCompile(`[\pL_][\pL_\p{Nd}]*\W*$`)

// shape returns a key in a form in which keys with probably the same meaning are equal: {phone} and {msg.Phone}.
func shape(r *model.Rule) string {
	var b strings.Builder
	for _, p := range r.Subject {
		b.WriteString(p.Literal)
		if p.Expr != "" {
			b.WriteString("{" + strings.ToLower(strings.TrimRight(last.FindString(p.Expr), ") ")) + "}")
		}
	}
	return b.String()
}

// Shared compares the rules of all packages of a run. It warns of rules with the same name and different windows, which do not
// share a budget, and of rules with the same name and the same window but different limits or keys, which do share one.
//
// It also warns of unnamed rules of two packages that share their counts by accident, as their default names are equal: the method
// C of type B in package a and the type C in package a.B, or packages with the same path in two modules.
func Shared(fset *token.FileSet, counts []Count) annotations.Diagnostics {
	var found annotations.Diagnostics
	firsts := map[string]*Count{} // by name, or by state for unnamed rules
	for i := range counts {
		c := &counts[i]
		id := c.state
		if c.named {
			id = "name=" + c.name
		}
		first := firsts[id]
		if first == nil {
			firsts[id] = c
			continue
		}
		at := annotations.Line(fset, first.rule, c.rule)
		switch {
		case !c.named && c.pkg != first.pkg:
			found.Warn(c.at, "this rule shares its counts with the rule of %s in %s, since both are called %s; give one of them a name",
				at, first.pkg, c.name)
		case !c.named || c.twin:
		case c.window != first.window:
			found.Warn(c.at, "rules called %s share a budget only if they have one window: this rule has %s, the rule of %s has %s",
				c.name, c.window, at, first.window)
		case c.limit >= 0 && first.limit >= 0 && c.limit != first.limit:
			found.Warn(c.at, "rules called %s share one budget, but have different limits: this rule has %d, the rule of %s has %d",
				c.name, c.limit, at, first.limit)
		case c.shape != first.shape:
			found.Warn(c.at, "rules called %s share one budget, but have different keys: this rule has %q, the rule of %s has %q",
				c.name, c.key, at, first.key)
		}
	}
	return found.Coded("rule")
}
