package generator

import (
	"go/token"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rule is a rule of a method. The name of its file is absolute.
type Rule struct {
	rulelist.Row
	rule ratelimit.Rule
}

// Ends returns the next n times after now at which calendar windows of the rule end. It returns none for a rule without cron=.
func (r Rule) Ends(now time.Time, n int) (ends []string) {
	times, _ := r.rule.Boundaries(now, n) // no error, as collect has checked the rule
	for _, t := range times {
		ends = append(ends, t.Format(time.RFC3339))
	}
	return ends
}

// Tag returns the last part of the keys of the rule's counts.
func (r Rule) Tag() string { return key.Tag(r.Rule, r.Method, r.rule.Window(), r.Key) }

// rulesOf returns the rules of a file.
func rulesOf(fset *token.FileSet, f *model.File) []Rule {
	var rules []Rule
	for _, m := range f.Methods() {
		for _, r := range m.Rules {
			rules = append(rules, Rule{rowOf(fset, m, r), r.Declared})
		}
	}
	return rules
}

func rowOf(fset *token.FileSet, m *model.Method, r *model.Rule) rulelist.Row {
	at, row := fset.PositionFor(r.Pos, false), rulelist.Of(r.Declared)
	row.File, row.Line, row.Method = at.Filename, at.Line, m.Scope
	if r.Declared.Computed {
		row.LimitExpr = r.Limit.Expr.Value
	}
	if n := r.Rule.Cost.Int; n > 1 {
		row.Settings["cost"] = n
	}
	for _, name := range []string{"cost", "when", "settle", "pause", "hold", "anchor"} {
		if text := r.Rule.Text(name); text != "" && (name != "cost" || !r.Rule.Cost.Expr.IsZero()) {
			row.Settings[name] = text
		}
	}
	return row
}
