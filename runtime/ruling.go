package ratelimit

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// ruling is what a call asks one rule. Its claim also has the answer of the rule. Outcomes, violations, quotas and triggers are made from it.
type ruling struct {
	rule      *preparedRule
	index     int // among the rules of the method, or among the requests
	subject   string
	member    string // in the form of keys, if the rule has Distinct
	cost      int64
	limit     int64
	wait      time.Duration // how long the rule may delay the call
	blockLeft time.Duration // how long the subject is still blocked
	pauseLeft time.Duration // how long a setting still pauses the subject
	claim     *engine.Claim // what it asks a store, and the answer
	neverFits bool          // the rule, in shadow mode, can never admit the cost
}

// count identifies what the rule counts for the subject of the call.
func (r *ruling) count() fleet.Count {
	return fleet.Count{Name: r.rule.Name, Tag: r.rule.numbers.Tag, Subject: r.subject}
}

// shown returns a subject in the form in which programs see it. They may keep the text.
func shown(subject string) string { return strings.Clone(key.Shown(subject)) }

// setSource makes a pause or a block that refused the call the source of the decision. If a failure policy decided, that stays the source.
func (c *call) setSource() {
	if c.isByPolicy() {
		return
	}
	if c.PausedUntil() > 0 {
		c.verdict.Source = engine.SourcePause
	}
	for i := range c.Claims {
		if claim := &c.Claims[i]; claim.Blocked && claim.Mode == engine.Enforce {
			c.verdict.Source = engine.SourceBlock
		}
	}
}

// never reports whether the rule refuses every such call.
func (r *ruling) never() bool {
	return r.neverFits || r.limit == 0 && r.blockLeft == 0 && r.rule.Mode != ModeTrigger
}

// retry returns how long it takes until the rule would admit the call. It is 0 if the rule admits the call now, never will, or cannot know
// when.
func (c *call) retry(r *ruling) time.Duration {
	if r.blockLeft > 0 || r.never() || r.isBusy() || c.lacksRate(r) {
		return r.blockLeft
	}
	return max(0, time.Duration(r.claim.Earliest-c.verdict.Now)*time.Microsecond)
}

// isBusy reports whether a refusal by the rule means that other calls run. Nobody knows when these end.
func (r *ruling) isBusy() bool { return r.rule.row.Releases && r.claim.Paused == 0 && !r.claim.Blocked }

// outcome returns the answer of one rule.
func (c *call) outcome(r *ruling) Outcome {
	claim := r.claim
	o := r.rule.outcome(r.subject, claim.Limit)
	if o.Cost = r.cost; !claim.Refused {
		return o
	}
	o.Refused, o.Never, o.RetryAfter, o.Remaining = true, r.never(), c.retry(r), claim.Room
	if r.isBusy() {
		o.Remaining, o.Running = max(0, min(claim.Room, r.cost-1)), claim.Limit-claim.Room
	}
	return o
}

// violations appends the refusals by rules in the given mode to list, and returns the longest delay, too.
func (c *call) violations(list []Violation, mode Mode) (_ []Violation, longest time.Duration) {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Mode != mode {
			continue
		}
		o := c.outcome(r)
		if !o.Refused {
			continue
		}
		longest = max(longest, o.RetryAfter)
		if c.lacksLimit(r) {
			o.Limit = 0
		}
		list = append(list, Violation{
			Rule: o.Rule, Window: o.Window, Key: strings.Clone(o.Key), Limit: o.Limit, Remaining: o.Remaining, RetryAfter: o.RetryAfter, Never: o.Never,
			Running: o.Running,
			policy:  c.policy(r), message: r.rule.Message,
		})
	}
	if c.never {
		longest = 0
	}
	return list, longest
}

// refusal returns the error of a refused call.
func (c *call) refusal() *TooManyRequestsError {
	e := &struct {
		TooManyRequestsError
		only [1]Violation // most refusals are by one rule; this saves them a second allocation
	}{TooManyRequestsError: TooManyRequestsError{Method: c.method, Never: c.never, Message: defaultMessage, hasher: c.limiter.hasher}}
	if e.Violations, e.RetryAfter = c.violations(e.only[:0], ModeEnforce); len(e.Violations) > 0 {
		e.Message = cmp.Or(e.longest().message, e.Message)
	}
	return &e.TooManyRequestsError
}

// quotas returns what the rules of the call have left, if the caller wants to know. It leaves out rules that nobody counts.
func (c *call) quotas() []Quota {
	if !c.wantsQuotas {
		return nil
	}
	quotas := make([]Quota, 0, len(c.rulings))
	for i := range c.rulings {
		r := &c.rulings[i]
		claim := r.claim
		if claim.By == engine.ByNobody || c.refusedHere() && !claim.Refused { // nobody has looked
			continue
		}
		q := Quota{
			Rule: r.rule.label, Window: r.rule.window, Key: shownAfter(quotas, r.subject), Limit: cmp.Or(r.burst(), claim.Limit), Reset: r.blockLeft,
			Remaining: max(0, claim.Room), policy: c.policy(r),
		}
		if c.lacksLimit(r) && q.Limit == r.limit && !claim.Blocked {
			q.Limit, q.Remaining = 0, q.Remaining-q.Limit
		}
		if !c.lacksRate(r) && q.Reset == 0 {
			q.Reset = max(0, time.Duration(claim.Full-c.verdict.Now)*time.Microsecond)
		}
		quotas = append(quotas, q)
	}
	return quotas
}

// shownAfter is shown. If the last quota has the same key, its text serves, as in most calls.
func shownAfter(quotas []Quota, subject string) string {
	if n := len(quotas); n > 0 && quotas[n-1].Key == key.Shown(subject) {
		return quotas[n-1].Key
	}
	return shown(subject)
}

// lacksLimit reports whether the limit is unknown: a peek at a rule with Computed goes by the highest limit, because calls bring their own.
func (c *call) lacksLimit(r *ruling) bool { return c.Peek && r.rule.Computed }

// lacksRate reports whether r is a bucket that lacks its limit, so nobody knows when it will be full.
func (c *call) lacksRate(r *ruling) bool {
	return c.lacksLimit(r) && r.rule.row.IsBucket
}

// policy returns what clients may know about the rule.
func (c *call) policy(r *ruling) policy {
	p := policy{index: r.index, unnamed: r.rule.unnamed, silent: r.rule.Mode != ModeEnforce, quota: r.claim.Limit}
	if !r.rule.row.Releases {
		p.window = r.rule.Per
	}
	if burst := r.burst(); burst > 0 {
		p.quota, p.window = burst, time.Duration(float64(r.rule.Per)*float64(burst)/float64(p.quota))
	}
	return p
}

// burst returns how many permits a full bucket admits. It returns 0 if the rule is no bucket, or a bucket that stores none, such as a warm-up
// or one with a limit of 0.
func (r *ruling) burst() int64 {
	if !r.rule.row.IsBucket || r.limit == 0 {
		return 0
	}
	return r.claim.Burst
}

// isByPolicy reports whether failure policies decided the call, because its store failed.
func (c *call) isByPolicy() bool { return c.verdict.Source == engine.SourcePolicy }

// addTo adds the answers of the rules to the statistics of the fleet.
func (c *call) addTo(s *fleet.Statistics) {
	s.Lock()
	defer s.Unlock()
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.rule.Scope == ScopeInstance {
			continue
		}
		n, numbers := fleet.Counts{Calls: 1}, r.rule.numbers
		if c.isByPolicy() {
			n.Failed = 1
		}
		switch {
		case c.err != nil || !r.claim.Refused:
		case r.rule.Mode == ModeEnforce:
			n.Refused = 1
			if r.claim.Blocked {
				n.Blocked = 1
			}
		default:
			n.Shadow = 1
		}
		s.Count(numbers.Hash(), numbers.Name, numbers.Tag, r.subject, n)
	}
}

// fire calls the limiter's trigger for each rule that has reached its limit.
func (c *call) fire(ctx context.Context) {
	for i := range c.rulings {
		if r := &c.rulings[i]; r.claim.Fired > 0 {
			c.limiter.trigger(ctx, Trigger{
				Method: c.method, Rule: r.rule.label, Key: shown(r.subject), Limit: r.limit, Used: r.claim.Fired,
			})
		}
	}
}
