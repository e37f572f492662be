package generator

import (
	"go/token"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rule is a rule as it applies to a method.
type Rule struct {
	File      string // its absolute path
	Line      int
	Method    string // pkg.Type.Method
	Name      string
	Key       string // the template
	Limit     int64  // 0 if it is an expression
	LimitExpr string // "" if it is a number
	Window    string // such as 1m, or a calendar's expression
	Algorithm ratelimit.Algorithm
	Settings  map[string]any // the other arguments that are not what they are by default, by name

	rule ratelimit.Rule
}

// Boundaries returns the next n times after now at which the rule's calendar windows end; none if they are no calendar's.
func (r Rule) Boundaries(now time.Time, n int) []time.Time {
	ends, err := r.rule.Boundaries(now, n)
	if err != nil {
		return nil // collect has found it valid
	}
	return ends
}

// Tag returns how the keys of the rule's counts end.
func (r Rule) Tag() string { return key.Tag(r.Name, r.Method, r.rule.Window(), r.Key) }

// rulesOf returns the rules of a package.
func rulesOf(fset *token.FileSet, p *model.Package) []Rule {
	var rules []Rule
	for m := range p.Methods() {
		for _, r := range m.Rules {
			rules = append(rules, ruleOf(fset, m, r))
		}
	}
	return rules
}

func ruleOf(fset *token.FileSet, m *model.Method, r *model.Rule) Rule {
	at := fset.PositionFor(r.Pos, false)
	row := Rule{
		File: at.Filename, Line: at.Line, Method: m.Scope, Name: r.Limit.Name, Key: r.Limit.Key,
		Limit: r.Limit.Limit, Window: window(r.Limit), Algorithm: r.Limit.Algorithm, Settings: settings(r), rule: r.Limit,
	}
	if row.LimitExpr = r.Rule.Limit.Expr.Value; row.LimitExpr != "" {
		row.Limit = 0
	}
	if r.Limit.Cron != "" {
		row.Algorithm = ratelimit.Calendar
	}
	return row
}
