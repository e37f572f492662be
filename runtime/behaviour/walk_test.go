package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A witness sees what a store answers, before a call that waits begins to sleep.
type witness struct {
	ratelimit.Store
	seen chan seen
}

type seen struct {
	verdict decide.Verdict
	err     error
}

func (w *witness) Decide(ctx context.Context, call *decide.Call) (decide.Verdict, error) {
	v, err := w.Store.Decide(ctx, call)
	w.seen <- seen{v, err}
	return v, err
}

// Return is done when it returns: the store by itself lets a call go whose place it takes long to give back.
func (w *witness) Return(ctx context.Context, call *decide.Call) error {
	return w.Store.Return(context.WithoutCancel(ctx), call)
}

// A running call is one that was begun: it is over or sleeps.
type running struct {
	what   string
	asks   []ask
	want   outcome
	number int
	wanted func(ratelimit.Rule) bool
	now    int64
	cancel context.CancelFunc
	told   *hooks        // read it after done only
	done   chan struct{} // closed when the call is over
	answer result
}

type result struct {
	decision ratelimit.Decision // of a request
	err      error
	back     func() error // gives back, if admitted
	at       int64        // when the call was over, by the program's clock
}

// request makes a call by requests.
func (w *walk) request(call string) {
	asks := w.drawAsks()
	if call == "Wait" && !mayWait(asks) {
		call = "Allow"
	}
	requests := requestsOf(asks)
	ctx, told := withHooks()
	ctx, cancel := context.WithCancel(ctx)
	wait := int64(0)
	ask := w.limiter.Allow
	switch call {
	case "Peek":
		ask = w.limiter.Peek
	case "Wait":
		ask = w.limiter.Wait
		wait, ctx, cancel = w.drawDeadline(ctx)
	}
	r := &running{what: call, asks: asksOf(requests, wait), wanted: all, cancel: cancel, told: told}
	w.begin(r, func() (result, error) {
		d, err := ask(ctx, requests...)
		return result{decision: d, back: func() error { return d.Refund(context.Background()) }}, err
	})
}

// mayWait reports whether a program may wait for all of the rules, and gets a place that all of them keep.
func mayWait(asks []ask) bool {
	return !slices.ContainsFunc(asks, func(q ask) bool {
		return q.rule.Scope != asks[0].rule.Scope || q.rule.Distinct != "" || q.rule.Algorithm == ratelimit.SlidingCounter
	})
}

// drawDeadline returns for how long a call may wait: until an instant where time obeys, and else as long as it takes.
func (w *walk) drawDeadline(parent context.Context) (wait int64, ctx context.Context, cancel context.CancelFunc) {
	const longest = 3660 * 24 * time.Hour
	if w.settled == nil || rapid.Bool().Draw(w.t, "without a deadline") {
		ctx, cancel = context.WithCancel(parent)
		return longest.Microseconds(), ctx, cancel
	}
	d := max(w.drawPause(), time.Microsecond)
	ctx, cancel = context.WithTimeout(parent, d)
	return d.Microseconds(), ctx, cancel
}

// charge makes a call as generated code does.
func (w *walk) charge() {
	asks := w.drawAsks()
	rules, charges := make([]ratelimit.Rule, len(asks)), make([]wrap.Charge, len(asks))
	if slices.ContainsFunc(asks, func(q ask) bool { return q.rule.Scope != asks[0].rule.Scope }) {
		for i := range asks { // no place is kept in both scopes
			asks[i].rule.Wait, asks[i].rule.Queue = 0, 0
		}
	}
	for i := range asks {
		q := &asks[i]
		rules[i] = q.rule
		charges[i] = wrap.Charge{Key: q.key, Cost: q.cost, Member: q.member}
		if rapid.IntRange(0, 3).Draw(w.t, "of its own limit") == 0 && !overruns(q.rule) {
			limit := limits.Draw(w.t, "limit of the call")
			charges[i].Limit, q.rule.Limit = wrap.LimitOf(limit), limit
		}
		q.wait = waitOf(q.rule, q.rule.Wait.Microseconds())
	}
	ctx, told := withHooks()
	ctx, cancel := context.WithCancel(ctx)
	prepared := wrap.NewRules("m", rules...)
	r := &running{what: "Charge", asks: countMembers(asks), wanted: refunds, cancel: cancel, told: told}
	if rapid.Bool().Draw(w.t, "begin") {
		r.what = "Begin"
		w.begin(r, func() (result, error) {
			charged, err := wrap.Begin(ctx, w.limiter, prepared, charges...)
			return result{back: func() error { ok := false; charged.RefundUnless(context.Background(), &ok); return nil }}, err
		})
		return
	}
	w.begin(r, func() (result, error) {
		return result{}, wrap.TakeCharges(ctx, w.limiter, prepared, charges...)
	})
}

// waitOf is how long a rule may delay a call that waits: in a bucket, no longer than its queue takes to leave, one call after
// the other where it holds one permit.
func waitOf(r ratelimit.Rule, wait int64) int64 {
	switch {
	case r.Queue == 0:
		return wait
	case r.Algorithm == ratelimit.LeakyBucket || r.Burst == 1:
		return min(wait, r.Queue*roundUp(refill(r, 1)).Num().Int64())
	}
	return min(wait, roundUp(refill(r, r.Queue)).Num().Int64())
}

// begin starts a call, asks the model for what is to come of it, and compares as soon as the call is over or sleeps.
func (w *walk) begin(r *running, call func() (result, error)) {
	r.done = make(chan struct{})
	w.begun = append(w.begun, r)
	r.now = time.Now().UnixMicro()
	go func() {
		r.answer, r.answer.err = call()
		r.answer.at = time.Now().UnixMicro()
		close(r.done)
	}()
	var place *seen
	if w.settled != nil {
		w.settled()
		for len(w.store.seen) > 0 {
			<-w.store.seen
		}
	} else {
		place = w.await(r)
	}
	if r.what == "Peek" {
		r.want = w.model.peek(r.now, r.asks)
	} else {
		r.want, r.number = w.model.allow(r.now, r.asks)
	}
	w.note("%s %s at %d: want %s", r.what, describe(r.asks), r.now, r.want)
	if place != nil && place.err == nil && (place.verdict.Admitted != r.want.allowed() || place.verdict.Admitted && !w.near(micros(place.verdict.At), micros(r.want.at))) {
		w.fail("got %+v", place.verdict)
	}
	if w.sleeps(r) {
		w.waiting = append(w.waiting, r)
		return
	}
	<-r.done
	w.end(r)
}

// await waits for a store's answer in real time.
func (w *walk) await(r *running) *seen {
	select {
	case s := <-w.store.seen:
		r.now = s.verdict.Now
		return &s
	case <-r.done:
		select {
		case s := <-w.store.seen:
			r.now = s.verdict.Now
			return &s
		default:
			if at := r.answer.decision.At; !at.IsZero() {
				r.now = at.UnixMicro()
			}
			return nil // decided without a store
		}
	}
}

// sleeps reports whether a call that has been begun is waiting for its place.
func (w *walk) sleeps(r *running) bool {
	wants := r.what != "Peek" && r.want.allowed() && r.want.at > r.now
	if w.settled != nil && wants == r.isOver() {
		w.fail("sleeps: %v; got %+v, error %v", !wants, r.answer.decision, r.answer.err)
	}
	return wants
}

// collect takes in the calls whose time has come.
func (w *walk) collect() {
	if w.settled != nil {
		w.settled()
	}
	for i := 0; i < len(w.waiting); i++ {
		r := w.waiting[i]
		switch {
		case r.isOver():
			w.waiting = slices.Delete(w.waiting, i, i+1)
			i--
			w.note("%s of %d is over at %d", r.what, r.now, r.answer.at)
			w.end(r)
		case w.settled != nil && time.Now().UnixMicro() >= r.want.at:
			w.fail("%s of %d still sleeps; its place was %d", r.what, r.now, r.want.at)
		}
	}
}

// end compares what a call came to.
func (w *walk) end(r *running) {
	answer := r.answer
	if r.want.allowed() && w.settled != nil && answer.at != max(r.now, r.want.at) && r.what != "Peek" {
		w.fail("%s was over at %d", r.what, answer.at)
	}
	w.compare(r)
	w.compareHooks(r)
	if answer.err != nil {
		return
	}
	w.retry = answer.decision.RetryAfter
	if r.number > 0 && answer.back != nil && !forgets(r) {
		w.taken = append(w.taken, taken{number: r.number, at: r.want.at, wanted: r.wanted, back: answer.back})
	}
}

// cancel ends the context of a call that waits. Where time does not obey, the call may be over just then.
func (w *walk) cancel() {
	if len(w.waiting) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.waiting)-1).Draw(w.t, "cancelled")
	r := w.waiting[i]
	if forgets(r) {
		return
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	from := time.Now().UnixMicro()
	w.note("cancel at %d the %s of %d for %d", from, r.what, r.now, r.want.at)
	r.cancel()
	<-r.done
	w.compareHooks(r)
	if r.answer.err == nil && w.settled == nil {
		w.end(r)
		return
	}
	if err := r.answer.err; !errors.Is(err, context.Canceled) || errors.Is(err, ratelimit.ErrTooManyRequests) {
		w.fail("got error %v", err)
	}
	w.returned(from, r.number, all)
}

// overruns reports whether a rule goes on to count beyond its limit where no more permits than that are remembered: what it
// says after a return, or under another limit, is not defined.
func overruns(r ratelimit.Rule) bool {
	_, isLog := lawOf(r).(slidingLaw)
	return isLog && r.Mode == ratelimit.ModeTrigger
}

func forgets(r *running) bool {
	return slices.ContainsFunc(r.asks, func(q ask) bool { return q.cost > 0 && overruns(q.rule) })
}

// finish ends all calls, of which one that sleeps too long would never.
func (w *walk) finish() {
	for range 2 * len(w.waiting) {
		w.cancel()
	}
	w.abandon()
}

// abandon ends all calls and looks at nothing any more.
func (w *walk) abandon() {
	for _, r := range w.begun {
		r.cancel()
		<-r.done
	}
	w.begun, w.waiting = nil, nil
}

func (r *running) isOver() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
