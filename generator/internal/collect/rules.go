package collect

import (
	"go/token"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// The words of the directives.
var (
	algorithms = map[string]ratelimit.Algorithm{
		"": ratelimit.SlidingWindow, "sliding-window": ratelimit.SlidingWindow, "fixed-window": ratelimit.FixedWindow,
		"calendar": ratelimit.Calendar, "token-bucket": ratelimit.TokenBucket, "leaky-bucket": ratelimit.LeakyBucket,
		"sliding-counter": ratelimit.SlidingCounter,
	}
	modes    = map[string]ratelimit.Mode{"shadow": ratelimit.ModeShadow, "trigger": ratelimit.ModeTrigger}
	scopes   = map[string]ratelimit.Scope{"instance": ratelimit.ScopeInstance}
	refunds  = map[string]ratelimit.Refund{"error": ratelimit.RefundError}
	policies = map[string]ratelimit.FailurePolicy{"deny": ratelimit.FailClosed, "allow": ratelimit.FailOpen, "local": ratelimit.FailLocal}
)

// rules makes the limits of directives that stand on what is called scope. Those that are wrong are marked as bad: their
// expressions are yet to be checked.
func (c *collector) rules(directives []annotations.Rule, scope string, wrap annotations.Wrap, ofType bool) []*model.Rule {
	var rules []*model.Rule
	for _, d := range directives {
		r := &model.Rule{Rule: d, OfType: ofType, Owner: scope, Limit: limitOf(d)}
		r.Limit.Name = scope
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
		if d.OnError == "" {
			r.Limit.OnError = policies[wrap.OnError]
		}
		r.Bad = r.Bad || !c.isValid(r)
		rules = append(rules, r)
	}
	return rules
}

// limitOf is what a directive says by itself.
func limitOf(d annotations.Rule) ratelimit.Rule {
	limit := d.Limit.Int
	if !d.Limit.Expr.IsZero() {
		limit = 1 // stands for what the calls bring along
	}
	return ratelimit.Rule{
		Key: d.Key.Value, Algorithm: algorithms[d.Algorithm], Limit: limit, Per: d.Per, Cron: d.Cron, TZ: d.TZ,
		Burst: d.Burst, Prepay: d.Prepay, Warmup: d.Warmup, Slices: d.Slices, Distinct: d.Distinct.Value,
		Wait: d.Wait, Queue: d.Queue, Block: d.Block, Mode: modes[d.Mode], Scope: scopes[d.Scope], Refund: refunds[d.Refund],
		OnError: policies[d.OnError], Message: static(d.Message),
	}
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

// isValid asks the runtime, which says what a valid rule is, and reports its answers at the arguments that they are about.
func (c *collector) isValid(r *model.Rule) bool {
	before, rule := len(c.errs), r.Limit
	if !r.Rule.Limit.Pos.IsValid() {
		c.errorf(r.Verb.Pos, "a rule needs limit=, the permits per window")
		rule.Limit = 1 // which goes with everything
	}
	switch cost := r.Rule.Cost; {
	case !cost.Pos.IsValid():
	case rule.Distinct != "":
		c.errorf(cost.Pos, "cost: found distinct as well, which counts a member once; what leaves calls out is when=")
	case cost.Expr.IsZero() && cost.Int < 1:
		c.errorf(cost.Pos, "cost: found %d; expected at least 1, or an expression", cost.Int)
	}
	for _, wrong := range rule.Problems() {
		c.errorf(position(r, wrong.Argument), "%s: %s", wrong.Argument, wrong.Reason)
	}
	return len(c.errs) == before
}

// zone reports a zone that is not known, also where no rule is in it.
func (c *collector) zone(wrap annotations.Wrap) {
	arg, ok := wrap.Arg("tz")
	if ok && wrap.TZ != "" {
		c.isValid(&model.Rule{
			Rule:  annotations.Rule{Limit: annotations.Amount{Pos: wrap.Pos}},
			Limit: ratelimit.Rule{Limit: 1, Cron: "@daily", TZ: wrap.TZ}, Zone: arg.Value.Pos,
		})
	}
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
