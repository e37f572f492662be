package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// Two runs make the same calls at the same times, on counts of their own. Where one calls Reserve, the other calls Wait. Where one gives a place
// back before its time, the other ends the context of the call. All answers of both are the same.
func TestReserveDoesWhatWaitDoes(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			rapid.SyncTest(t, func(t *rapid.T) { walkInPairs(t, t.Fatalf, onStore(memstore.New()), "run") })
		})
	})
	inVirtualTime(t, func(t *testing.T, s *subject) {
		for n := range 50 {
			rapid.Custom(func(r *rapid.T) bool {
				walkInPairs(r, t.Fatalf, s, fmt.Sprint("run", n))
				return true
			}).Example(n)
		}
	})
}

func walkInPairs(t *rapid.T, fail func(string, ...any), s *subject, key string) {
	p := newPair(t, s, key)
	p.fail = fail
	defer p.end()
	for range 40 {
		p.step()
	}
}

// A pair are the two runs.
type pair struct {
	t              *rapid.T // what draws
	fail           func(format string, args ...any)
	reserves, own  *ratelimit.Limiter // own is that of the run that waits
	rules          []ratelimit.Rule
	key            string
	taken          []*holding
	retry, patient time.Duration // of the last refusal, and until the last place
}

// holding is a place of each run, or a charge.
type holding struct {
	*waits
	decision ratelimit.Decision // of Reserve, or of Allow
	other    ratelimit.Decision // of Allow in the run that waits
	isBack   bool
}

// waits is a call of Wait.
type waits struct {
	cancel   context.CancelFunc
	done     chan struct{}
	decision ratelimit.Decision // after done
	err      error
}

func (w *waits) isOver() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func newPair(t *rapid.T, s *subject, key string) *pair {
	p := &pair{t: t, key: key, reserves: ratelimit.New(bare{s.store}), own: ratelimit.New(bare{s.store}, ratelimit.WithPrefix("waits"))}
	for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
		rule := anyRule.Filter(func(r ratelimit.Rule) bool { return letsWait(r) && !overruns(r) }).Draw(t, "rule")
		rule.Name, rule.Scope = fmt.Sprint(key, "-", i), ratelimit.ScopeFleet
		p.rules = append(p.rules, rule)
	}
	return p
}

// end calls the waiting calls off.
func (p *pair) end() {
	for _, c := range p.taken {
		if c.waits != nil {
			c.cancel()
			<-c.done
		}
	}
}

func (p *pair) step() {
	p.pass()
	switch what := rapid.IntRange(0, 9).Draw(p.t, "what"); {
	case what < 5:
		p.reserve()
	case what < 6:
		p.allow()
	case what < 9:
		p.refund()
	default:
		rule := &p.rules[rapid.IntRange(0, len(p.rules)-1).Draw(p.t, "changed")]
		rule.Limit = drawLimit(p.t, *rule)
	}
}

// pass lets time pass, and compares the places whose time has come.
func (p *pair) pass() {
	next := p.patient - time.Microsecond
	part := rapid.SampledFrom(p.rules).Draw(p.t, "window").Per / time.Duration(rapid.IntRange(1, 8).Draw(p.t, "part"))
	pauses := []time.Duration{0, 0, 0, 0, 0, 0, time.Microsecond, part.Truncate(time.Microsecond), p.retry, p.patient, next}
	time.Sleep(rapid.SampledFrom(pauses).Draw(p.t, "pause"))
	for _, c := range p.taken {
		if c.waits == nil || c.isBack {
			continue
		}
		due := !time.Now().Before(c.decision.At)
		if c.isOver() != due || due && (c.err != nil || !c.waits.decision.At.Equal(c.decision.At)) {
			p.fail("Reserve: at %v; Wait: over %v at %v, error %v", c.decision.At, c.isOver(), c.waits.decision.At, c.err)
		}
	}
}

func (p *pair) requests() []ratelimit.Request {
	w := walk{t: p.t, rules: p.rules}
	var requests []ratelimit.Request
	for _, q := range w.drawAsks() {
		cost := min(max(q.cost, 1), max(lawOf(q.rule).most(), 1))
		requests = append(requests, ratelimit.Request{Rule: q.rule, Key: p.key, Cost: cost, Anchor: anchorOf(q.rule)})
	}
	return requests
}

func (p *pair) reserve() {
	requests, ctx, cancel := p.requests(), context.Background(), context.CancelFunc(func() {})
	if rapid.Bool().Draw(p.t, "deadline") {
		left := rapid.SampledFrom([]time.Duration{time.Microsecond, p.retry, p.retry + time.Microsecond, time.Second, time.Hour}).Draw(p.t, "left")
		ctx, cancel = context.WithTimeout(ctx, max(left, time.Microsecond))
	}
	d, err := p.reserves.Reserve(ctx, requests...)
	cancel()
	w := p.wait(ctx, requests)
	switch isOver := w.isOver(); {
	case err != nil:
		p.fail("%v", err)
	case d.Allowed && d.Delay != time.Until(d.At):
		p.fail("Reserve: %+v", d)
	case d.Allowed && isOver == (d.Delay == 0):
		p.taken = append(p.taken, &holding{waits: w, decision: d})
		p.patient = d.Delay
	case !d.Allowed && !isOver: // it asks again
		w.cancel()
		<-w.done
		p.retry = d.RetryAfter
	case !d.Allowed && isOver:
		p.retry = d.RetryAfter
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](w.err)
		alike := func(one, other ratelimit.Violation) bool {
			return one.Rule == other.Rule && one.Remaining == other.Remaining
		}
		if !ok || !slices.EqualFunc(d.Violations, refusal.Violations, alike) {
			p.fail("Reserve: %+v; Wait: %v", d, w.err)
		}
	default:
		p.fail("Reserve: %+v; Wait: over %v", d, isOver)
	}
}

// wait begins a call of Wait with the time that a context has left.
func (p *pair) wait(of context.Context, requests []ratelimit.Request) *waits {
	w := &waits{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(of))
	if deadline, ok := of.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	w.cancel = cancel
	go func() {
		defer close(w.done)
		w.decision, w.err = p.own.Wait(ctx, requests...)
	}()
	return w
}

func (p *pair) allow() {
	requests := p.requests()
	one, err := p.reserves.Allow(context.Background(), requests...)
	other, failed := p.own.Allow(context.Background(), requests...)
	if err != nil || failed != nil || one.Allowed != other.Allowed || fmt.Sprint(one.Violations) != fmt.Sprint(other.Violations) {
		p.fail("Allow: %+v, error %v; in the run that waits %+v, error %v", one, err, other, failed)
	}
	if p.retry = one.RetryAfter; one.Allowed {
		p.taken = append(p.taken, &holding{decision: one, other: other})
	}
}

// refund gives a charge back. It calls off a call that waits.
func (p *pair) refund() {
	of := p.taken
	if ahead := slices.DeleteFunc(slices.Clone(of), func(c *holding) bool {
		return c.isBack || !time.Now().Before(c.decision.At)
	}); len(ahead) > 0 && rapid.IntRange(0, 3).Draw(p.t, "at any time") > 0 {
		of = ahead
	}
	if len(of) == 0 {
		return
	}
	c := rapid.SampledFrom(of).Draw(p.t, "returned")
	c.isBack = true
	if err := c.decision.Refund(context.Background()); err != nil {
		p.fail("%v", err)
	}
	other := c.other
	if c.waits != nil {
		if !c.isOver() {
			c.cancel()
			<-c.done
			return
		}
		other = c.waits.decision
	}
	if err := other.Refund(context.Background()); err != nil {
		p.fail("%v", err)
	}
}
