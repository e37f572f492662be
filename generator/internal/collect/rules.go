package collect

import (
	"cmp"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// rules returns the rules of the directives above the method or type called scope. Invalid rules are marked as bad and returned too,
// so that their expressions can be checked.
func (c *collector) rules(directives []annotations.Rule, scope string, options annotations.Directive, ofType bool) []*model.Rule {
	var rules []*model.Rule
	for _, d := range directives {
		r := &model.Rule{Rule: d, OfType: ofType, Declared: fields.Of(d)}
		r.Declared.Name = cmp.Or(r.Declared.Name, scope)
		if prefix := options.Text("prefix"); prefix != "" {
			r.Declared.Name = prefix + "." + r.Declared.Name
		}
		if zone, ok := options.Arg("tz"); ok && r.Declared.TZ == "" && (r.Declared.Cron != "" || r.Declared.Every != "") {
			r.Declared.TZ, r.Zone = zone.Value.Value, zone.Value.Pos
		}
		if policy, ok := options.Arg("on-error"); ok && d.Text("on-error") == "" {
			fields.Set(&r.Declared, annotations.Value{Argument: annotations.LookUp("rule").Argument("on-error"), Text: policy.Value.Value})
		}
		r.Bad = r.Bad || !c.isValid(r)
		if _, ok := r.Arg("anchor"); !ok && r.Declared.Every != "" && !r.Bad {
			c.found.Add(r.At("every"), "every= needs anchor=, a time of the key's own, as in anchor=\"user.BilledSince\"; for windows that are the same for all, write cron=")
			r.Bad = true
		}
		rules = append(rules, r)
	}
	return rules
}

// isValid reports whether a rule is valid. The runtime decides that; isValid adds an error at each argument that is wrong.
func (c *collector) isValid(r *model.Rule) bool {
	before, rule := len(c.found), r.Declared
	if !r.Limit.Pos.IsValid() {
		c.found.Add(r.Verb.Pos, "a rule needs limit=, the permits per window")
		rule.Limit = 1 // valid with all other arguments
	}
	switch cost := r.Rule.Cost; {
	case !cost.Pos.IsValid():
	case rule.Distinct != "":
		c.found.Add(cost.Pos, "cost= does not go with distinct=: each member counts once. To exempt calls, write when=")
	}
	noFields := slices.DeleteFunc([]string{"settle", "hold"}, func(name string) bool { _, ok := r.Arg(name); return !ok })
	if arg, ok := r.Arg("settle"); ok && rule.Distinct != "" {
		c.found.Add(arg.Value.Pos, "settle= does not go with distinct=: each member counts once")
	}
	if arg, ok := r.Arg("hold"); ok && r.OfType {
		c.found.Add(arg.Value.Pos, "hold= names a result of one method: write the rule above the methods, with name= to share its count")
	}
	if arg, ok := r.Arg("anchor"); ok && rule.Every == "" {
		c.found.Add(arg.Value.Pos, "anchor= needs every=, whose windows count from it, as in every=1mo")
	}
	for _, calendar := range []string{"cron", "every"} {
		if r.Text("algorithm") == "sliding-window" && r.Text(calendar) != "" { // to Problems, it is as good as absent
			c.found.Add(r.At("algorithm"), "algorithm: found sliding-window with %s, whose windows are the calendar's", calendar)
		}
	}
	for _, wrong := range rule.Problems(noFields...) {
		c.found.Add(r.At(wrong.Argument), "%s: %s", wrong.Argument, wrong.Reason)
	}
	return !c.found[before:].HasErrors()
}

// zone reports an unknown time zone of wrap or guard, even if no rule uses it.
func (c *collector) zone(options annotations.Directive) {
	if arg, ok := options.Arg("tz"); ok {
		c.isValid(&model.Rule{
			Rule:     annotations.Rule{Limit: annotations.Amount{Pos: options.Pos}},
			Declared: ratelimit.Rule{Limit: 1, Cron: "@daily", TZ: arg.Value.Value}, Zone: arg.Value.Pos,
		})
	}
}

// Rule returns the rule of a directive that belongs to no method, and the errors in it. If the limit is an expression, the rule has
// the limit 1.
func Rule(d annotations.Rule) (ratelimit.Rule, annotations.Diagnostics) {
	c, r := &collector{}, &model.Rule{Rule: d, Declared: fields.Of(d)}
	c.isValid(r)
	return r.Declared, c.found
}
