package ratelimit

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// FailurePolicy is what happens to a call that the store fails to decide, because the store cannot be reached, is full, or answers with an
// error. The zero value is DefaultPolicy.
//
// Under FailLocal a limiter keeps its own counts until they expire, even after the store is back. So each process gives a subject at most
// one more limit in a window, however often the store fails. If the limiter dropped these counts, each outage would give a subject a whole
// new limit.
type FailurePolicy uint32

const (
	DefaultPolicy FailurePolicy = iota // of a rule: the limiter's; of a limiter: FailClosed
	FailClosed                         // the call fails with a *StoreError; the directives' word is deny
	FailOpen                           // the call passes; the directives' word is allow
	FailLocal                          // this limiter counts in this process, apart from the store; the directives' word is local
)

// shareShift is the position of the number of processes in a FailurePolicy.
const shareShift = 8

// FailLocalShare returns FailLocal for a fleet of n processes. While the store fails, each process admits max(1, limit / n) permits, so the
// fleet admits at most max(limit, n). A call that costs more than its process may admit fails with a *StoreError. If it is the limiter's
// policy, its n is also that of rules with FailLocal. An n below 1 means 1, and an n above 10,000,000 means 10,000,000.
func FailLocalShare(n int) FailurePolicy {
	return FailLocal | FailurePolicy(min(max(n, 1), 10_000_000))<<shareShift
}

// base returns the policy without the number of processes.
func (p FailurePolicy) base() FailurePolicy { return p & (1<<shareShift - 1) }

// share returns how many processes share a limit.
func (p FailurePolicy) share() int64 { return max(1, int64(p>>shareShift)) }

// String returns the directives' word: "deny", "allow" or "local". It returns "" for DefaultPolicy, and a text such as "local of 3" for
// FailLocalShare.
func (p FailurePolicy) String() string {
	s := word("FailurePolicy", uint8(p.base()), "", "deny", "allow", "local")
	if p.share() > 1 {
		s += fmt.Sprintf(" of %d", p.share())
	}
	return s
}

// policyOf returns the policy of a rule. FailLocal without a number of processes has the number of the limiter's policy.
func (l *Limiter) policyOf(rule *prepared) FailurePolicy {
	if rule.OnError == DefaultPolicy || rule.OnError == FailLocal && l.policy.base() == FailLocal {
		return l.policy
	}
	return rule.OnError
}

// followPolicy decides the rules of fleet scope after their store failed, by the strictest of the rules' policies.
func (c *call) followPolicy(ctx context.Context, failure error) error {
	c.answer.source, c.answer.failure = SourcePolicy, failure
	policy := FailOpen
	for i := range c.asked {
		a := &c.asked[i]
		if a.part != &c.fleet {
			continue
		}
		switch p := c.limiter.policyOf(a.rule); p.base() {
		case FailOpen:
		case FailLocal:
			policy = FailLocal
			if !a.split(p.share()) {
				return failure
			}
		default:
			return failure
		}
	}
	if policy == FailLocal {
		c.fleet.store = c.limiter.fallback
	} else {
		c.fleet.store = nothing{}
	}
	return c.askPart(ctx, &c.fleet)
}

// split divides the limit of a claim by n processes. It reports false if the call costs more than the share of one process.
func (a *asked) split(n int64) bool {
	if n == 1 {
		return true
	}
	claim := a.claim()
	a.limit = max(1, a.limit/n)
	claim.Limit, claim.Burst = a.limit, max(min(claim.Burst, 1), claim.Burst/n)
	most, _ := claim.Most()
	if claim.Mode == engine.Enforce && !a.part.UpTo && claim.Cost > most {
		return false
	}
	claim.Cost = min(claim.Cost, most)
	return true
}

// nothing is a store that admits everything and counts nothing.
type nothing struct{ engine.Store }

func (nothing) Decide(_ context.Context, call *engine.Call) (engine.Verdict, error) {
	for i := range call.Claims {
		c := &call.Claims[i]
		c.Charged, c.Refused, c.Fired = 0, false, 0
	}
	now, taken := time.Now().UnixMicro(), int64(0)
	if call.UpTo && !call.Refused {
		taken = call.Claims[0].Cost
	}
	return engine.Verdict{Now: now, At: now, Admitted: !call.Refused, Taken: taken}, nil
}
