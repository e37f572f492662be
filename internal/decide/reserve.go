package decide

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/parts"
)

// reserve asks once for a place, as a call that waits does, and does not sleep until then. If a pause holds calls of this process in the line of one
// of its rules, these come first. Then the call is refused as by a pause, which lasts until the first of them has asked again.
func (c *Call) reserve(ctx context.Context) error {
	if r := c.ruleWithLine(); r != nil {
		r.pauseLeft, c.paused = max(r.pauseLeft, pollPause), true
	}
	c.Report = c.Report || c.visits&costly != 0 // what is left, if no place can be kept
	if err := c.askStores(ctx); err != nil {
		return err
	}
	if v := c.verdict; v.Admitted {
		c.waited = time.Duration(v.At-v.Now) * time.Microsecond
		return nil
	}
	c.retryAtPlace()
	return nil
}

// retryAtPlace changes the Earliest of each rule that refuses the call because the place is too far ahead. All rules admit the call at the largest
// Earliest. A rule keeps a place for as long ahead as its wait, so the call gets its place that much before. A rule with block= admits a call at once or
// not at all, so its Earliest stays.
func (c *Call) retryAtPlace() {
	now, at := c.verdict.Now, int64(0)
	for i := range c.Asked {
		if a := &c.Asked[i]; a.Rule.enforces() {
			at = max(at, a.Claim.Earliest)
		}
	}
	for i := range c.Asked {
		claim := c.Asked[i].Claim
		isTooFar := claim.Refused && claim.Paused == 0 && claim.Earliest > now+claim.Wait
		if isTooFar && claim.Mode == engine.Enforce && claim.Rule.Block == 0 {
			claim.More = cmp.Or(claim.More, claim.Earliest)
			claim.Earliest = at - claim.Wait
		}
	}
}

// refuseForNow refuses a call for which no place can be kept: by each rule that does not admit it now.
func (c *Call) refuseForNow() {
	for i := range c.Asked {
		if a := &c.Asked[i]; a.Rule.enforces() && a.Claim.Earliest > c.verdict.Now {
			a.Claim.Refused = true
		}
	}
}

// cannotReserve returns a *ratelimit.RuleError if a place of the rule would say nothing about its time.
func (c *Call) cannotReserve(rule *Rule) error {
	reason := ""
	switch kind := rule.Numbers.Kind; {
	case rule.Row.Releases:
		reason = "does not go with concurrency: nobody knows when running calls end"
	case kind.CountsMembers():
		reason = "does not go with distinct=: nobody knows which members count by then"
	case !kind.Accepts("wait"):
		reason = "does not go with " + kind.String() + ", which keeps no places"
	case rule.Numbers.Pausable:
		reason = "does not go with pause= or Pausable: a pause that begins before the place would hold the call"
	default:
		return nil
	}
	return rule.Declared.Wrong("reserve", reason)
}

// explain returns the *ratelimit.RuleError of a call that reserves and has several parts, or err itself.
func (c *Call) explain(err error) error {
	if !errors.Is(err, parts.ErrParts) {
		return err
	}
	reason := "found different keys, which may be on different servers; expected one key"
	for _, r := range c.rules {
		if r.Instance != c.rules[0].Instance {
			reason = "found scope=instance and scope=fleet in one call; expected one of them"
		}
	}
	return c.limiter.public.RuleError("", "reserve", reason)
}
