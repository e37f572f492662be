package ratelimit

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// What programs see of a call is made here from its claims.

// shown returns a subject in the form in which programs see it. They may keep the text.
func shown(subject string) string { return strings.Clone(key.Shown(subject)) }

// unanswered returns the outcome of a rule without an answer.
func unanswered(rule *decide.Rule, subject string, limit int64) Outcome {
	return Outcome{
		Rule: rule.Label, Window: rule.Window, Key: key.Shown(subject), Mode: Mode(rule.Ask.Mode), Limit: limit, Releases: rule.Row.Releases,
	}
}

// outcomeOf returns the answer of one rule.
func outcomeOf(c *decide.Call, a *decide.Asked) Outcome {
	claim := a.Claim
	o := unanswered(a.Rule, claim.Subject, claim.Limit)
	if o.Cost, o.Waits = a.Cost, a.Waits(); !claim.Refused {
		return o
	}
	o.Refused, o.Never, o.RetryAfter, o.Remaining = true, a.Never(), c.Retry(a), left(claim)
	if !o.Never { // it may admit the call now, and not when the others do
		o.Remaining = min(o.Remaining, a.Cost-1)
	}
	if a.IsBusy() {
		o.Running = claim.Limit - claim.Room
	}
	return o
}

// left returns how many permits a rule would admit now: none during a pause.
func left(claim *engine.Claim) int64 {
	if claim.Paused > 0 {
		return 0
	}
	return max(0, claim.Room)
}

// violationsOf appends the refusals by rules in the given mode to list, and returns the longest delay, too.
func violationsOf(c *decide.Call, list []Violation, mode Mode) (_ []Violation, longest time.Duration) {
	asked := c.InOrder()
	for i := range asked {
		a := &asked[i]
		if Mode(a.Rule.Ask.Mode) != mode {
			continue
		}
		o := outcomeOf(c, a)
		if !o.Refused {
			continue
		}
		longest = max(longest, o.RetryAfter)
		more := c.More(a)
		switch {
		case o.Never:
			more = 0
		case left(a.Claim) >= a.Cost: // see outcomeOf
			more = o.RetryAfter
		}
		if c.LacksLimit(a) {
			o.Limit = 0
		}
		if n := len(list); n > 0 && list[n-1].policy.index == int32(a.Index) { // a peek at both counts of a rule with Computed: block= may refuse either
			list[n-1].RetryAfter, list[n-1].More = max(list[n-1].RetryAfter, o.RetryAfter), max(list[n-1].More, more)
			continue
		}
		list = append(list, Violation{
			Rule: o.Rule, Window: o.Window, Key: strings.Clone(o.Key), Limit: o.Limit, Remaining: o.Remaining, More: more, RetryAfter: o.RetryAfter,
			Never: o.Never, Running: o.Running, policy: policyOf(a), burst: burstOf(a), message: a.Rule.Message,
		})
	}
	if c.IsNever() {
		longest = 0
	}
	return list, longest
}

// refusalOf returns the error of a refused call.
func refusalOf(c *decide.Call) *TooManyRequestsError {
	e := &struct {
		TooManyRequestsError
		only [1]Violation // most refusals are by one rule; this saves them a second allocation
	}{TooManyRequestsError: TooManyRequestsError{Method: c.Method(), Never: c.IsNever(), Message: defaultMessage}}
	if e.Violations, e.RetryAfter = violationsOf(c, e.only[:0], ModeEnforce); len(e.Violations) > 0 {
		e.Message = cmp.Or(longest(e.Violations).message, e.Message)
	}
	return &e.TooManyRequestsError
}

// quotasOf returns what the rules of the call have left, if the caller wants to know. It leaves out rules that nobody counts.
func quotasOf(c *decide.Call) []Quota {
	if !c.WantsQuotas() {
		return nil
	}
	quotas := make([]Quota, 0, len(c.Asked))
	for i := range c.Asked {
		a := &c.Asked[i]
		claim := a.Claim
		if !c.IsCounted(a) || c.IsUnseen(a) {
			continue
		}
		q := Quota{
			Rule: a.Rule.Label, Window: a.Rule.Window, Key: shownAfter(quotas, claim.Subject), Limit: cmp.Or(burstOf(a), claim.Limit),
			Cost: a.Cost, Reset: a.BlockLeft, Remaining: left(claim), More: c.More(a), policy: policyOf(a),
		}
		if c.LacksLimit(a) && q.Limit == a.Limit {
			if q.Limit, q.Remaining = 0, max(0, claim.Room)-q.Limit; claim.Blocked || a.Rule.NoStore { // nobody knows what is used
				q.Remaining = 0
			}
		}
		if !c.LacksRate(a) && q.Reset == 0 {
			q.Reset = max(0, time.Duration(claim.Full-c.Verdict().Now)*time.Microsecond)
		}
		// While block= refuses, no permit is back.
		q.Reset = max(q.Reset, q.More)
		if n := len(quotas); n > 0 && quotas[n-1].policy.index == int32(a.Index) { // each call has one of the counts, and finds at most so many permits used
			quotas[n-1].merge(q)
			continue
		}
		quotas = append(quotas, q)
	}
	return quotas
}

// merge adds what another count of the rule has left.
func (q *Quota) merge(other Quota) {
	switch q.Reset = max(q.Reset, other.Reset); {
	case other.Remaining < q.Remaining:
		q.Remaining, q.More = other.Remaining, other.More
	case other.Remaining == q.Remaining:
		q.More = max(q.More, other.More)
	}
}

// shownAfter is shown. If the last quota has the same key, its text serves, as in most calls.
func shownAfter(quotas []Quota, subject string) string {
	if n := len(quotas); n > 0 && quotas[n-1].Key == key.Shown(subject) {
		return quotas[n-1].Key
	}
	return shown(subject)
}

// policyOf returns what clients may know about the rule.
func policyOf(a *decide.Asked) policy {
	r := a.Rule
	p := policy{index: int32(a.Index), unnamed: r.Unnamed, silent: r.Ask.Mode != engine.Enforce, unreported: r.Unreported, concurrent: r.Row.Releases}
	if !r.Row.Releases {
		p.window = r.Per
	}
	if burst := burstOf(a); burst > 0 {
		p.window = time.Duration(float64(r.Per) * float64(burst) / float64(a.Claim.Limit))
	}
	return p
}

// burstOf returns how many permits a full bucket admits. It returns 0 if the rule is no bucket, or a bucket that stores none, such as a warm-up
// or one with a limit of 0.
func burstOf(a *decide.Asked) int64 {
	if !a.Rule.Row.IsBucket || a.Limit == 0 {
		return 0
	}
	return a.Claim.Burst
}

// fire calls the limiter's trigger for each rule that has reached its limit.
func (o *options) fire(ctx context.Context, c *decide.Call) {
	for i := range c.Asked {
		if a := &c.Asked[i]; a.Claim.Fired > 0 {
			o.trigger(ctx, Trigger{
				Method: c.Method(), Rule: a.Rule.Label, Key: shown(a.Claim.Subject), Limit: a.Limit, Used: a.Claim.Fired,
			})
		}
	}
}
