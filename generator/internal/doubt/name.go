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
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Count describes the count of a rule, to find rules of other packages that share it.
type Count struct {
	pkg   string // the path of the package
	rule  ratelimit.Rule
	named bool      // the directive has a name
	id    string    // the name, or, without one, the key of the count in the store, without prefix and subject
	twin  bool      // an error was reported already, as another rule of the method shares the count
	shape string    // of the key, as returned by shape
	start string    // of the anchor, as returned by start
	since string    // the anchor
	pos   token.Pos // of the directive
	at    token.Pos // of the name, or of the verb
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
			name, named := r.Declared.Name, r.Rule.Text("name") != ""
			id := "name=" + name
			if !named {
				id = key.State("", name, "", key.Tag(name, m.Scope, r.Declared.Window(), r.Declared.Key))
			}
			found = append(found, Count{pkg.Types.Path(), r.Declared, named, id, a.twin[r.Pos], shape(r), start(r), r.Rule.Anchor.Value, r.Pos, r.At("name")})
		}
	}
	slices.SortStableFunc(found, func(a, b Count) int { return cmp.Compare(a.pos, b.pos) })
	return found
}

// last matches the last word of an expression, such as Phone in msg.Phone.
var last = regexp.MustCompile(`[\pL_][\pL_\p{Nd}]*\W*$`)

// shape returns a key in a form in which keys with probably the same meaning are equal: {phone} and {msg.Phone}.
func shape(r *model.Rule) string {
	return written(r.Subject, func(p model.Piece) string { return strings.ToLower(strings.TrimRight(last.FindString(p.Expr), ") ")) })
}

// outer matches what start leaves out of an anchor: spaces, what is before a dot, and the last word of an argument.
var outer = regexp.MustCompile(`\s+|[\pL_][\pL_\p{Nd}]*\s*(?:\??\.|([,)]))`)

// start returns an anchor in a form in which anchors with probably the same meaning are equal: user.BilledSince and c.BilledSince, or
// billing.Since(u) and Since(user). It is "" if the rule has no anchor, or a wrong one.
func start(r *model.Rule) string {
	return strings.ToLower(outer.ReplaceAllString(textOf(r.Anchor), "$1"))
}

// Shared compares the rules of all packages of a run. It warns of rules with the same name and different windows, which do not
// share a budget, and of rules with the same name and the same window but different limits, keys or anchors, which do share one.
//
// It also warns of unnamed rules of two packages that share their counts by accident, as their default names are equal: the method
// C of type B in package a and the type C in package a.B, or packages with the same path in two modules.
func Shared(fset *token.FileSet, counts []Count) annotations.Diagnostics {
	var found annotations.Diagnostics
	firsts := map[string]*Count{}
	for i := range counts {
		c := &counts[i]
		first := firsts[c.id]
		if first == nil {
			firsts[c.id] = c
			continue
		}
		here, there, line := c.rule, first.rule, annotations.Line(fset, first.pos, c.pos)
		switch {
		case !c.named && c.pkg != first.pkg:
			found.Warn(c.at, "this rule shares its counts with the rule of %s in %s, since both are called %s; give one of them a name",
				line, first.pkg, here.Name)
		case !c.named || c.twin:
		case here.Window() != there.Window():
			found.Warn(c.at, "rules called %s share a budget only if they have one window: this rule has %s, the rule of %s has %s",
				here.Name, here.Window(), line, there.Window())
		case !here.Computed && !there.Computed && here.Limit != there.Limit:
			found.Warn(c.at, "rules called %s share one budget, but have different limits: this rule has %d, the rule of %s has %d",
				here.Name, here.Limit, line, there.Limit)
		case c.shape != first.shape:
			found.Warn(c.at, "rules called %s share one budget, but have different keys: this rule has %q, the rule of %s has %q",
				here.Name, here.Key, line, there.Key)
		case c.start != first.start && c.start != "" && first.start != "":
			found.Warn(c.at, "rules called %s share one budget, but have different anchors: this rule has %q, the rule of %s has %q; "+
				"the call that opens a window says when it begins, so write one anchor, or give this rule another name",
				here.Name, c.since, line, first.since)
		}
	}
	return found.Coded("rule")
}
