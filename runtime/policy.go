package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/parts"
)

// FailurePolicy is what happens to a call that the store fails to decide, because the store cannot be reached, is full, or answers with an
// error. The zero value is DefaultPolicy.
//
// Under FailLocal a limiter keeps its own counts until they expire, even after the store is back. So each process gives a subject at most
// one more limit in a window, however often the store fails. If the limiter dropped these counts, each outage would give a subject a whole
// new limit. For these counts a limiter has as much room as its store in memory; on Redis, 1,000,000 counts and 256 MiB. A call for which that
// is not enough fails with a *StoreError.
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

// policyDecider decides by the store of a limiter. While the store fails, it decides by the failure policies of the rules instead.
type policyDecider struct {
	limiter     *Limiter
	fallback    func() backend.Decider // counts under FailLocal
	parts.Split                        // adjusts each charge where it was made, and resets the store
}

// Decide implements backend.Decider.
func (p *policyDecider) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	v, err := p.limiter.store.Decide(ctx, call)
	switch {
	case err == nil:
		if last := p.limiter.outage.last.Load(); last != 0 && v.Source == engine.SourceStore { // others say nothing about the store
			p.limiter.noteBack(ctx, last)
		}
		return v, nil
	case ctx.Err() != nil || answers(err):
		return v, err
	}
	p.limiter.noteFailure(ctx, err)
	v, err = p.decideInstead(ctx, call, err)
	p.limiter.outage.add(call, err)
	return v, err
}

// answers reports whether an error is the answer of a store that works. No failure policy applies to it.
func answers(err error) bool {
	_, unreadable := errors.AsType[*backend.StateError](err)
	_, unfit := errors.AsType[*RuleError](err)
	return unreadable || unfit
}

// decideInstead decides a call that the store failed to decide, by the strictest of the rules' policies.
func (p *policyDecider) decideInstead(ctx context.Context, call *engine.Call, failure error) (v engine.Verdict, err error) {
	policy, by := FailOpen, engine.ByNobody
	v.Source, call.Failure = engine.SourcePolicy, failure
	for i := range call.Claims {
		c := &call.Claims[i]
		switch own := p.of(c.Rule); own.base() {
		case FailOpen:
		case FailLocal:
			policy, by = FailLocal, engine.ByFallback
			if !divide(call, c, own.share()) {
				return v, failure
			}
		default:
			return v, failure
		}
	}
	if policy == FailLocal {
		v, err = p.fallback().Decide(ctx, call)
	} else {
		v = pass(call)
	}
	for i := range call.Claims {
		call.Claims[i].By = by
	}
	v.Source = engine.SourcePolicy
	return v, err
}

// of returns the policy of a rule. FailLocal without a number of processes has the number of the limiter's policy.
func (p *policyDecider) of(rule *engine.Rule) FailurePolicy {
	own := FailurePolicy(rule.OnError)
	if own == DefaultPolicy || own == FailLocal && p.limiter.policy.base() == FailLocal {
		return p.limiter.policy
	}
	return own
}

// divide divides the limit of a claim by n processes. It reports false if the call costs more than the share of one process. A rule that refuses
// nothing is asked for at most that share.
func divide(call *engine.Call, c *engine.Claim, n int64) bool {
	if n == 1 {
		return true
	}
	c.Limit, c.Burst = max(1, c.Limit/n), max(min(c.Burst, 1), c.Burst/n)
	most, _ := c.Most()
	if c.Mode == engine.Enforce && !call.UpTo && c.Cost > most {
		return false
	}
	c.Cost = min(c.Cost, most)
	return true
}

// pass admits a call that nobody counts.
func pass(call *engine.Call) engine.Verdict {
	for i := range call.Claims {
		call.Claims[i].Clear()
	}
	now := time.Now().UnixMicro()
	v := engine.Verdict{Now: now, At: now, Answer: engine.Answer{Admitted: !call.Refused}}
	if call.UpTo && v.Admitted {
		v.Taken = call.Claims[0].Cost
	}
	return v
}

// The store counts as back when no call has failed for the time quiet. If one of several servers is lost, some calls fail while
// others succeed.
const quiet = 5 * time.Second

// outage is what a limiter knows of the time in which its store fails.
type outage struct {
	began, last             atomic.Int64 // when the store first and last failed, in nanoseconds; last is 0 if the store is not lost
	failed, passed, counted atomic.Int64 // calls: not decided, let pass by nobody's count, and counted in this process
}

// add counts a call that a failure policy has decided.
func (o *outage) add(call *engine.Call, err error) {
	switch {
	case call.Peek:
	case err != nil:
		o.failed.Add(1)
	case call.Claims[0].By == engine.ByFallback:
		o.counted.Add(1)
	default:
		o.passed.Add(1)
	}
}

// noteFailure notes that the store failed to decide a call. If the store is lost now, it logs that and tells observers.
func (l *Limiter) noteFailure(ctx context.Context, err error) {
	now := l.store.Time().UnixNano()
	if l.outage.last.Swap(now) == 0 {
		l.outage.began.Store(now)
		l.logger.WarnContext(ctx, "the rate limit store fails; failure policies decide", "err", oneLine(err.Error()))
		l.tell(ctx, EventStoreLost, "", err)
	}
	l.fleet.NoteStore(err)
}

// noteBack notes that the store decides. If the last failure was a while ago, it logs that the store is back, and tells observers.
func (l *Limiter) noteBack(ctx context.Context, last int64) {
	o := &l.outage
	if l.store.Time().UnixNano()-last < int64(quiet) || !o.last.CompareAndSwap(last, 0) {
		return
	}
	l.logger.InfoContext(ctx, "the rate limit store is back", "failed_for", time.Duration(last-o.began.Load()).String(),
		"calls_failed", o.failed.Swap(0), "calls_passed", o.passed.Swap(0), "calls_counted_here", o.counted.Swap(0))
	l.fleet.NoteStore(nil)
	l.tell(ctx, EventStoreBack, "", nil)
}

// failedLately reports whether a decision failed a short time ago.
func (l *Limiter) failedLately() bool {
	last := l.outage.last.Load()
	return last != 0 && l.store.Time().UnixNano()-last < int64(quiet)
}
