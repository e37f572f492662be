package decide

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/parts"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Policy is what happens to a call that the store fails to decide. Package ratelimit has it as a type of its own.
type Policy uint32

const (
	DefaultPolicy Policy = iota
	FailClosed
	FailOpen
	FailLocal
)

// shareShift is the position of the number of processes in a Policy.
const shareShift = 8

// Among returns the policy for a fleet of n processes.
func (p Policy) Among(n int) Policy { return p | Policy(n)<<shareShift }

// Base returns the policy without the number of processes.
func (p Policy) Base() Policy { return p & (1<<shareShift - 1) }

// Share returns how many processes share a limit.
func (p Policy) Share() int64 { return max(1, int64(p>>shareShift)) }

// ofFleet decides those claims of a call that have fleet scope: by the limiter's store, or by the failure policies of their rules while the store
// fails.
type ofFleet Step

// Adjust implements backend.Decider: it adjusts charges where they were made.
func (f *ofFleet) Adjust(ctx context.Context, call *engine.Call) error {
	if f.by == byFallback {
		return f.limiter.fallback().Adjust(ctx, call)
	}
	return f.limiter.store.Adjust(ctx, call)
}

// Reset implements backend.Decider: it resets the store.
func (f *ofFleet) Reset(ctx context.Context, call *engine.Call) (int, error) {
	return f.limiter.store.Reset(ctx, call)
}

// Decide implements backend.Decider.
func (f *ofFleet) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	l := f.limiter
	v, err := l.store.Decide(ctx, call)
	switch {
	case err == nil:
		f.answered = v.Source == engine.SourceStore // other sources say nothing about the store
		return v, nil
	case ctx.Err() != nil || l.answers(err):
		return v, err
	}
	v, err = f.decideInstead(ctx, call, err)
	if !call.Peek && !call.Grows {
		l.outage.add(f.by, err)
	}
	return v, err
}

// answers reports whether an error is the answer of a store that works. No failure policy applies to it.
func (l *Limiter) answers(err error) bool {
	_, unreadable := errors.AsType[*backend.StateError](err)
	return unreadable || errors.Is(err, parts.ErrParts) || l.public.IsAnswer(err)
}

// decideInstead decides a call that the store failed to decide, by the strictest of the rules' policies.
func (f *ofFleet) decideInstead(ctx context.Context, call *engine.Call, failure error) (v engine.Verdict, err error) {
	v.Source, f.failure = engine.SourcePolicy, failure
	by := byNobody
	for i := range call.Claims {
		c := &call.Claims[i]
		switch own := f.limiter.policyOf((*Step)(f).ruleOf(c)); own.Base() {
		case FailOpen:
		case FailLocal:
			by = byFallback
			if !divide(call, c, own.Share()) {
				return v, failure
			}
		default:
			return v, failure
		}
	}
	if f.by = by; by == byFallback {
		v, err = f.limiter.fallback().Decide(ctx, call)
	} else {
		v = pass(call)
	}
	v.Source = engine.SourcePolicy
	return v, err
}

// policyOf returns the policy of a rule. FailLocal without a number of processes has the number of the limiter's policy.
func (l *Limiter) policyOf(rule *Rule) Policy {
	own := rule.OnError
	if own == DefaultPolicy || own == FailLocal && l.policy.Base() == FailLocal {
		return l.policy
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
	v := engine.Verdict{Now: now, At: now, Finding: engine.Finding{Admitted: !call.Refused}}
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

// add counts a call that failure policies have decided.
func (o *outage) add(by holder, err error) {
	switch {
	case err != nil:
		o.failed.Add(1)
	case by == byFallback:
		o.counted.Add(1)
	default:
		o.passed.Add(1)
	}
}

// noteStore notes whether the store has failed or answered. If that is news, observers are told, who may panic: so the charge of the step must be
// known by then.
func (s *Step) noteStore(ctx context.Context) {
	l := s.limiter
	switch last := l.outage.last.Load(); {
	case s.failure != nil:
		l.noteFailure(ctx, s.failure)
	case s.answered && last != 0:
		l.noteBack(ctx, last)
	}
}

// noteFailure notes that the store failed to decide a call. If the store is lost now, it logs that and tells observers.
func (l *Limiter) noteFailure(ctx context.Context, err error) {
	now := l.store.Time().UnixNano()
	if l.outage.last.Swap(now) == 0 {
		l.outage.began.Store(now)
		l.logger.WarnContext(ctx, "the rate limit store fails; failure policies decide", "err", printable.Line(err.Error()))
		l.Tell(ctx, StoreLost, "", err)
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
	l.Tell(ctx, StoreBack, "", nil)
}

// FailedLately reports whether a decision failed a short time ago.
func (l *Limiter) FailedLately() bool {
	last := l.outage.last.Load()
	return last != 0 && l.store.Time().UnixNano()-last < int64(quiet)
}
