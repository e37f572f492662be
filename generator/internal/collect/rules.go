package collect

import (
	"errors"
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/runtime"
)

// notYet are the arguments that are understood but whose behaviour is not built.
var notYet = []string{
	"distinct", "wait", "scope", "mode", "refund", "on-error", "prepay", "warmup", "queue", "slices", "block",
}

// refuse reports what is not supported yet.
func (c *collector) refuse(g annotations.Group) {
	for i := range g.Rules {
		r := &g.Rules[i]
		c.refuseArgs(&r.Directive)
		if !r.Limit.Expr.IsZero() {
			c.errorf(r.Limit.Pos, "an expression as limit is not supported yet; expected a number")
			r.Bad = true
		}
	}
	for i := range g.Wraps {
		c.refuseArgs(&g.Wraps[i].Directive)
	}
	for _, f := range g.Fallbacks {
		c.errorf(f.Verb.Pos, "fallback is not supported yet")
	}
}

func (c *collector) refuseArgs(d *annotations.Directive) {
	for _, name := range notYet {
		if arg, ok := d.Arg(name); ok {
			c.errorf(arg.Name.Pos, "%s is not supported yet", name)
			d.Bad = true
		}
	}
}

var algorithms = map[string]runtime.Algorithm{
	"": runtime.SlidingWindow, "sliding-window": runtime.SlidingWindow, "fixed-window": runtime.FixedWindow,
	"calendar": runtime.Calendar, "token-bucket": runtime.TokenBucket, "leaky-bucket": runtime.LeakyBucket,
	"sliding-counter": runtime.SlidingCounter,
}

// rules makes the limits of directives that stand on what is called scope. Those that are wrong are left out.
func (c *collector) rules(directives []annotations.Rule, scope string, wrap annotations.Wrap, ofType bool) []*model.Rule {
	var rules []*model.Rule
	for _, d := range directives {
		if d.Bad {
			continue
		}
		r := &model.Rule{Rule: d, OfType: ofType, Owner: scope}
		r.Limit = runtime.Rule{
			Name: scope, Key: d.Key.Value, Algorithm: algorithms[d.Algorithm], Limit: d.Limit.Int,
			Per: d.Per, Cron: d.Cron, TZ: d.TZ, Burst: d.Burst,
		}
		if d.Name != "" {
			r.Limit.Name = d.Name
			if wrap.Prefix != "" {
				r.Limit.Name = wrap.Prefix + "." + d.Name
			}
		}
		if d.TZ == "" && d.Cron != "" && wrap.TZ != "" {
			arg, _ := wrap.Arg("tz")
			r.Limit.TZ, r.Zone = wrap.TZ, arg.Value.Pos
		}
		r.Limit.Message = static(d.Message)
		if c.isValid(r) {
			rules = append(rules, r)
		}
	}
	return rules
}

// static is the text of a template without islands.
func static(t annotations.Template) string {
	var b strings.Builder
	for _, p := range t.Parts {
		if !p.Island.IsZero() {
			return ""
		}
		b.WriteString(p.Literal)
	}
	return b.String()
}

// isValid asks the runtime, which says what a valid rule is, and reports its answer at the argument that it is about.
func (c *collector) isValid(r *model.Rule) bool {
	if !r.Rule.Limit.Pos.IsValid() {
		c.errorf(r.Verb.Pos, "a rule needs limit=, the permits per window")
		return false
	}
	err := r.Limit.Validate()
	if err == nil {
		return true
	}
	var wrong *runtime.RuleError
	if !errors.As(err, &wrong) {
		c.errorf(r.Verb.Pos, "%v", err)
		return false
	}
	c.errorf(position(r, wrong.Argument), "%s: %s", wrong.Argument, wrong.Reason)
	return false
}

// position is where an argument stands, or what it is missing from.
func position(r *model.Rule, argument string) token.Pos {
	arg, ok := r.Arg(argument)
	switch {
	case argument == "tz" && r.Zone.IsValid():
		return r.Zone
	case !ok:
		return r.Verb.Pos
	case arg.Value.IsZero():
		return arg.Name.Pos
	}
	return arg.Value.Pos
}

// twins reports rules of one method that count the same calls in the same window: one of them never decides.
func (c *collector) twins(rules []*model.Rule) {
	type identity struct{ name, key, window string }
	seen := map[identity]*model.Rule{}
	for _, r := range rules {
		id := identity{r.Limit.Name, r.Limit.Key, r.Limit.Window()}
		other := seen[id]
		if other == nil {
			seen[id] = r
			continue
		}
		if r.Pos < other.Pos {
			r, other = other, r
		}
		line := c.fset.Position(other.Pos).Line
		c.errorf(r.Verb.Pos, "this rule counts the same calls in the same window (%s) as the one of line %d; keep the stricter one, or give one a name",
			id.window, line)
	}
}
