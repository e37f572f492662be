package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A witness sees the answers of a store, in order, before a waiting call begins to sleep.
type witness struct {
	ratelimit.Store
	mu   sync.Mutex
	seen chan seen
}

type seen struct {
	ctx     context.Context
	verdict engine.Verdict
	err     error
}

func (w *witness) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, err := w.Store.Decide(ctx, call)
	w.seen <- seen{ctx, v, err}
	return v, err
}

// A running is a call that was started. It has finished, or it sleeps.
type running struct {
	what     string
	asks     []ask
	began    int64
	deadline int64 // of its context; 0 means none
	cancel   context.CancelFunc
	wanted   func(ratelimit.Rule) bool
	done     chan struct{} // closed when the call has finished

	// What the model expects of the last decision on the call.
	want   outcome
	number int
	now    int64

	// The results of the call. They may only be read after done.
	told     hooks
	decision ratelimit.Decision // of a request
	err      error
	back     func() error // refunds the call, if it was admitted
	ended    int64
}

// due returns when a sleeping call goes on. A call that asks again sleeps for some time at least.
func (r *running) due() int64 {
	if r.want.again {
		return max(r.want.at, r.now+100)
	}
	return r.want.at
}

func (r *running) sleeps() bool {
	return r.what != "Peek" && r.what != "Reserve" && (r.want.again || r.want.allowed() && r.want.at > r.now)
}

// hooks records what the limiter's observers and triggers saw of a call.
type hooks struct {
	shadows  []ratelimit.Violation
	triggers []ratelimit.Trigger
}

type runningKey struct{}

func runningOf(ctx context.Context) *running { return ctx.Value(runningKey{}).(*running) }

// newRunning returns a call, and a context for it.
func newRunning(what string, asks []ask, wanted func(ratelimit.Rule) bool) (*running, context.Context) {
	r := &running{what: what, asks: asks, wanted: wanted, done: make(chan struct{}), began: time.Now().UnixMicro()}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), runningKey{}, r))
	r.cancel = cancel
	return r, ctx
}

// request makes a call by requests.
func (w *walk) request(what string) {
	asks := w.drawAsks()
	if what == "Wait" && !mayWait(asks) || what == "Reserve" && !mayReserve(asks) {
		what = "Allow"
	}
	requests := requestsOf(asks)
	call, patience := w.limiter.Allow, time.Duration(0)
	switch what {
	case "Peek":
		call = w.limiter.Peek
	case "Wait":
		call, patience = w.limiter.Wait, w.drawPatience()
	case "Reserve":
		call, patience = w.limiter.Reserve, w.drawPatience()
	}
	asks = asksOf(requests, patience.Microseconds())
	if what == "Reserve" {
		asks = reserving(asks, patience.Microseconds())
	}
	r, ctx := newRunning(what, asks, all)
	if 0 < patience && patience < forever {
		r.deadline = r.began + patience.Microseconds()
		ctx, r.cancel = context.WithTimeout(ctx, patience)
	}
	w.begin(r, func() error {
		d, err := call(ctx, requests...)
		r.decision, r.back = d, func() error { return d.Refund(context.Background()) }
		return err
	})
}

// mayWait reports whether a call may wait for all of the rules. All must be of fleet scope, because the witness sees only these decisions.
func mayWait(asks []ask) bool {
	return !slices.ContainsFunc(asks, func(q ask) bool {
		return q.rule.Scope == ratelimit.ScopeInstance || !letsWait(q.rule)
	})
}

// mayReserve reports whether Reserve takes a call: all of its rules have one scope, and those in enforce mode keep places.
func mayReserve(asks []ask) bool {
	return !slices.ContainsFunc(asks, func(q ask) bool {
		return q.rule.Scope != asks[0].rule.Scope || q.rule.Mode == ratelimit.ModeEnforce && !letsWait(q.rule)
	})
}

// letsWait reports whether calls can wait for a rule.
func letsWait(r ratelimit.Rule) bool {
	r.Mode, r.Wait = ratelimit.ModeEnforce, time.Second
	return r.Validate() == nil && !countsRunning(r) // who waits there has no place
}

// forever is how long a call waits if its context has no deadline.
const forever = 3660 * 24 * time.Hour

func (w *walk) drawPatience() time.Duration {
	if rapid.Bool().Draw(w.t, "without a deadline") {
		return forever
	}
	return max(w.drawPause(), time.Microsecond)
}

// charge makes a call as generated code does.
func (w *walk) charge() {
	asks := w.drawAsks()
	rules, charges := make([]ratelimit.Rule, len(asks)), make([]wrap.Charge, len(asks))
	if slices.ContainsFunc(asks, func(q ask) bool { return q.rule.Scope == ratelimit.ScopeInstance }) {
		for i := range asks {
			asks[i].rule.Wait, asks[i].rule.Queue = 0, 0
		}
	}
	for i := range asks {
		q := &asks[i]
		rules[i] = q.rule
		charges[i] = wrap.Charge{Key: q.key, Cost: q.cost, Member: q.member, Anchor: anchorOf(q.rule)}
		if rapid.IntRange(0, 3).Draw(w.t, "of its own limit") == 0 && !overruns(q.rule) {
			limit := drawLimit(w.t, q.rule)
			if mayCountAmounts(asks, i) && rapid.Bool().Draw(w.t, "above 10,000") {
				limit, q.cost, q.rule.Amounts = limit*20_000, q.cost*20_000, q.rule.Amounts || limit > 0
			}
			rules[i].Computed, rules[i].Limit, charges[i].Limit, charges[i].Cost, q.rule.Limit = true, 0, limit, q.cost, limit
			if q.rule.Block == 0 && !q.rule.Pausable && rapid.IntRange(0, 3).Draw(w.t, "without a limit") == 0 {
				charges[i].Limit, q.cost = ratelimit.NoLimit, 0 // it is charged nothing, as at a cost of 0
			}
		}
		q.patience = q.rule.Wait.Microseconds()
	}
	prepared := wrap.NewRules("m", rules...)
	r, ctx := newRunning("TakeCharges", patient(asks), refunds)
	take := func() error { return wrap.TakeCharges(ctx, prepared.On(w.limiter), prepared, charges...) }
	if rapid.Bool().Draw(w.t, "begin") {
		r.what, r.wanted = "Begin", func(r ratelimit.Rule) bool { return refunds(r) || countsRunning(r) }
		for i := range r.asks {
			r.asks[i].kept = true
		}
		take = func() error {
			charged, err := wrap.Begin(ctx, prepared.On(w.limiter), prepared, charges...)
			r.back = func() error {
				ok := false
				charged.RefundUnless(context.Background(), &ok)
				charged.Release(context.Background())
				return nil
			}
			return err
		}
	}
	w.begin(r, take)
}

// mayCountAmounts reports whether a rule of a call counts amounts at a limit above 10,000, and no other rule of the call has that count.
func mayCountAmounts(asks []ask, rule int) bool {
	q := asks[rule]
	if q.rule.Algorithm != ratelimit.SlidingWindow || isCalendar(q.rule) || q.rule.Distinct != "" {
		return false
	}
	q.rule.Amounts = true
	for i, other := range asks {
		if i != rule && other.identity() == q.identity() {
			return false
		}
	}
	return true
}

// begin starts a call, and compares it with the model as soon as it has finished or sleeps.
func (w *walk) begin(r *running, call func() error) {
	w.begun = append(w.begun, r)
	go func() {
		r.err = call()
		r.ended = time.Now().UnixMicro()
		close(r.done)
	}()
	w.settle()
	if r.now == 0 { // decided without a store
		w.decided(r, r.began)
	}
	if w.requireAsleep(r); r.sleeps() {
		w.waiting = append(w.waiting, r)
		return
	}
	w.end(r)
}

// settle waits until all calls sleep or have finished. Then it makes the model decide the calls that the store has decided meanwhile. A call under
// rules of both scopes is decided in two steps, at one time.
func (w *walk) settle() {
	synctest.Wait()
	for len(w.store.seen) > 0 {
		s := <-w.store.seen
		switch r := runningOf(s.ctx); {
		case r.now > 0 && r.want.again && s.verdict.Now != r.due():
			w.fail("%s of %d asked again at %d, not %d", r.what, r.began, s.verdict.Now, r.due())
		case r.now == 0 || r.want.again:
			w.decided(r, s.verdict.Now)
		}
	}
}

// decided makes the model decide a call, in the order of the store's decisions.
func (w *walk) decided(r *running, now int64) {
	asks := slices.Clone(r.asks)
	for i := range asks {
		asks[i].wait = min(asks[i].wait, max(0, asks[i].patience-(now-r.began)))
	}
	r.now = now
	switch r.what {
	case "Peek":
		r.want = w.model.peek(now, asks)
	case "Reserve":
		r.want, r.number = w.model.reserve(now, asks)
	default:
		r.want, r.number = w.model.allow(now, asks)
	}
	w.note("%s of %d %s at %d: want %s", r.what, r.began, describe(asks), now, r.want)
}

// requireAsleep fails the test unless a call has finished or sleeps, as the model expects.
func (w *walk) requireAsleep(r *running) {
	if r.sleeps() == r.isOver() {
		w.fail("sleeps: %v; got %+v, error %v", !r.isOver(), r.decision, r.err)
	}
}

// collect compares the waiting calls that have finished. It fails the test if a call sleeps although its time has come.
func (w *walk) collect() {
	w.settle()
	w.waiting = slices.DeleteFunc(w.waiting, func(r *running) bool {
		if r.isOver() {
			w.note("%s of %d is over at %d", r.what, r.began, r.ended)
			w.end(r)
			return true
		}
		if time.Now().UnixMicro() >= r.due() {
			w.fail("%s of %d still sleeps; it was to go on at %d", r.what, r.began, r.due())
		}
		return false
	})
}

// end compares the result of a call with the model.
func (w *walk) end(r *running) {
	if r.want.again {
		if !errors.Is(r.err, context.DeadlineExceeded) || r.due() <= r.deadline {
			w.fail("%s was over at %d: %v", r.what, r.ended, r.err)
		}
		return
	}
	if r.want.allowed() && r.ended != max(r.now, r.want.at) && r.what != "Peek" && r.what != "Reserve" {
		w.fail("%s was over at %d", r.what, r.ended)
	}
	w.compare(r)
	w.compareHooks(r)
	if r.err != nil {
		return
	}
	w.retry = r.decision.RetryAfter
	if r.number > 0 && r.back != nil && !forgets(r) {
		w.taken = append(w.taken, r)
	}
}

// overruns reports whether a rule counts beyond its limit but keeps at most as many permits as the limit. Its answers after a refund, or with
// another limit, are not defined.
func overruns(r ratelimit.Rule) bool {
	_, isLog := lawOf(r).(slidingLaw)
	return isLog && r.Mode == ratelimit.ModeTrigger
}

func forgets(r *running) bool {
	return slices.ContainsFunc(r.asks, func(q ask) bool { return q.cost > 0 && overruns(q.rule) })
}

// abandon ends all calls without comparing them.
func (w *walk) abandon() {
	for _, r := range w.begun {
		r.cancel()
		<-r.done
	}
}

func (r *running) isOver() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
