package doubt

import (
	"cmp"
	"errors"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// neverApplies warns of a rule that never charges a call, because its cost is a constant 0. It also reports a cost or a settlement to a
// constant below 0.
func (a *analysis) neverApplies(r *model.Rule) {
	switch v, ok := costOf(r); {
	case ok && v == 0:
		a.found.Warn(r.Rule.Cost.Pos, "cost: this is always 0, so the rule refuses no call; write at least 1")
	case ok && v < 0:
		a.found.Add(r.Rule.Cost.Pos, "cost: this is always %d; expected at least 0", v)
	}
	if v, ok := constant(r.Settle).(int); ok && v < 0 {
		a.found.Add(r.At("settle"), "settle: this is always %d, so no call is settled; expected at least 0", v)
	}
}

// neverValid reports a constant expression that is not a valid limit.
func (a *analysis) neverValid(r *model.Rule) {
	if r.Declared.Computed || r.Limit.Expr.IsZero() {
		return
	}
	var wrong *ratelimit.RuleError
	if errors.As(r.Declared.Validate(), &wrong) {
		a.found.Add(r.Limit.Pos, "%s: %s", wrong.Argument, wrong.Reason)
	}
}

// neverPasses reports a constant cost that the rule can never admit.
func (a *analysis) neverPasses(r *model.Rule) {
	limit, known := limitOf(r)
	cost, constant := costOf(r)
	switch most := cmp.Or(r.Declared.Burst, limit); {
	case !known || limit <= 0 || !constant: // a limit of 0 refuses everything on purpose
	case r.Declared.Prepay || r.Declared.Warmup > 0 || r.Declared.Mode == ratelimit.ModeTrigger:
	case r.Declared.Algorithm == ratelimit.LeakyBucket && cost > 1:
		a.found.Add(r.Rule.Cost.Pos, "cost: found %d, but a leaky-bucket holds 1 permit and never admits more; expected %s", cost, dearer)
	case cost > most:
		a.found.Add(r.Rule.Cost.Pos, "cost: found %d, which is never admitted; expected at most %d", cost, most)
	}
}

// emptyKey reports a key that is empty in every call.
func (a *analysis) emptyKey(r *model.Rule) {
	if text, ok := same(r.Subject); ok && text == "" && len(r.Subject) > 0 {
		a.found.Add(r.At("key"), "key: this is empty in every call, so every call fails; without key= there is one budget for everybody")
	}
}

// dearer is the advice for a leaky bucket with costs above 1.
const dearer = "prepay, or a token-bucket"

// dearLeaks warns of a leaky bucket with a cost that may be above 1. It admits no such call, as it holds 1 permit.
func (a *analysis) dearLeaks(r *model.Rule) {
	_, constant := costOf(r)
	if r.Declared.Algorithm == ratelimit.LeakyBucket && !r.Declared.Prepay && r.Cost != nil && !constant {
		a.found.Warn(r.Rule.Cost.Pos, "cost: a leaky-bucket holds 1 permit, so it never admits a call that costs more; expected %s", dearer)
	}
}
