package decide

import (
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// What package ratelimit asks of a call that was decided. The file runtime/outcome.go makes outcomes, violations and quotas from it.

// Method returns pkg.Type.Method, or "" for requests.
func (c *Call) Method() string { return c.method.name() }

// Verdict returns the answer to the call.
func (c *Call) Verdict() engine.Verdict { return c.verdict }

// Err returns why the call was not decided, or nil.
func (c *Call) Err() error { return c.err }

// Failure returns why the store failed to decide the call, if failure policies decided it, and otherwise nil.
func (c *Call) Failure() error { return c.failure }

// IsCounted reports whether somebody has counted the rule, or refused by it. Otherwise a failure policy let it pass.
func (c *Call) IsCounted(a *Asked) bool { return c.by != byNobody || a.Rule.Instance }

// Waited returns how long the call waited for its permits.
func (c *Call) Waited() time.Duration { return c.waited }

// IsAbandoned reports whether the context ended while the call waited.
func (c *Call) IsAbandoned() bool { return c.abandoned }

// IsNever reports whether a rule of limit 0 refuses the call.
func (c *Call) IsNever() bool { return c.never }

// Clock is what tells the time by which the limiter sleeps.
type Clock interface{ Time() time.Time }

// Decided returns the clock of the limiter, and when the answer came by it. A call whose place has come was answered before it slept.
func (c *Call) Decided() (Clock, time.Time) {
	store := c.limiter.store
	if c.verdict.Admitted && !c.until.IsZero() {
		return store, c.until.Add(-time.Duration(c.verdict.At-c.verdict.Now) * time.Microsecond)
	}
	return store, store.Time()
}

// WantsQuotas reports whether the caller wants to know what the rules have left.
func (c *Call) WantsQuotas() bool { return c.Peek || c.wishes.Report != nil }

// refusedHere reports whether the call is refused without asking any store.
func (c *Call) refusedHere() bool { return c.never || c.isBlocked }

// IsUnseen reports whether nobody has looked at the rule's count, because a setting refuses the call: a block or a pause of another rule, or a limit
// of 0.
func (c *Call) IsUnseen(a *Asked) bool {
	return !a.Claim.Refused && (c.refusedHere() || c.paused && a.pauseLeft == 0)
}

// isByPolicy reports whether failure policies decided the call, because its store failed.
func (c *Call) isByPolicy() bool { return c.verdict.Source == engine.SourcePolicy }

// Never reports whether the rule refuses every such call.
func (a *Asked) Never() bool {
	return a.Claim.Wait == engine.NeverFits || a.Limit == 0 && a.BlockLeft == 0 && a.Claim.Mode != engine.Trigger
}

// Retry returns how long it takes until the rule would admit the call. It is 0 if the rule admits the call now, never will, or cannot know
// when.
func (c *Call) Retry(a *Asked) time.Duration {
	if a.BlockLeft > 0 || a.Never() || a.IsBusy() || c.LacksRate(a) {
		return a.BlockLeft
	}
	return max(0, time.Duration(a.Claim.Earliest-c.verdict.Now)*time.Microsecond)
}

// More returns how long it takes until more permits are there than the rule has left now: see engine.Claim. It is 0 if no more come, and if nobody
// knows when. Without a report it is known of a refusal, which is then of one permit.
func (c *Call) More(a *Asked) time.Duration {
	switch at := a.Claim.More; {
	case a.BlockLeft > 0 || c.LacksRate(a):
		return a.BlockLeft
	case at != 0 && !a.IsBusy():
		return max(0, time.Duration(at-c.verdict.Now)*time.Microsecond)
	case a.Claim.Refused:
		return c.Retry(a)
	}
	return 0
}

// Waits reports whether the call may wait for permits of the rule.
func (a *Asked) Waits() bool { return a.wait > 0 }

// IsBusy reports whether a refusal by the rule means that other calls run. Nobody knows when these end.
func (a *Asked) IsBusy() bool { return a.Rule.Row.Releases && a.Claim.Paused == 0 && !a.Claim.Blocked }

// LacksLimit reports whether the limit is unknown: a peek at a rule with Computed goes by the highest limit, because calls bring their own.
func (c *Call) LacksLimit(a *Asked) bool { return c.Peek && a.Rule.Computed }

// LacksRate reports whether the rule is a bucket that lacks its limit, so nobody knows when it will be full.
func (c *Call) LacksRate(a *Asked) bool { return c.LacksLimit(a) && a.Rule.Row.IsBucket }
