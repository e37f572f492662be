package simulate

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"log/slog"
	"math"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// simulator is a limiter in virtual time, with the calls that wait for it. A sleeping call is a coroutine, which continues when virtual time
// reaches the time at which it wakes. Only one coroutine runs at a time. A call whose place is certain, such as one under a single rule,
// does not sleep. All other calls ask again when they wake.
type simulator struct {
	ratelimit.Store
	limiter *ratelimit.Limiter
	event   ratelimit.Event // the last decision
	now     time.Time
	current *caller // the caller whose call is being decided
	queues  queues
	hashed  map[uint64]*queue // the queues by their hashes
	seed    maphash.Seed
	idle    []*caller // coroutines whose calls are decided
	slept   int       // the number of calls that have slept

	releases bool          // calls release permits when they end
	runs     time.Duration // how long each call runs
	running  []running     // the calls that run, the one that ends next first
}

// running is a call that holds permits until it ends.
type running struct {
	end   time.Time
	taken *wrap.Taken
}

// prepared has the rules of a method in the form in which the limiter of a simulator takes them.
type prepared struct {
	rules  *wrap.Rules
	limits *wrap.Limits
}

// queue has equal calls that sleep, in the order of their arrival: calls that charge the same rules the same. All of them would get the same answer
// as the first. So the others sleep until the first is admitted or refused; otherwise each permit would wake all of them.
type queue struct {
	hash     uint64 // of what the calls charge
	sleepers []*caller
}

// caller is a call that is being decided, and its coroutine.
type caller struct {
	prepared prepared
	charges  []wrap.Charge // valid until the call sleeps
	decided  func(*ratelimit.Event, error) error
	err      error // of decided

	next  func() (wake time.Time, ok bool) // runs the call until it sleeps or is decided; wake is zero if it is decided
	stop  func()
	sleep func(until time.Time) bool
	wake  time.Time
	order int // the order among calls that wake at the same time
}

// longest is a time after all others.
var longest = time.UnixMicro(math.MaxInt64)

// newSimulator returns a simulator with room for a number of counts. Calls run for a time, or for a second if that is 0.
func newSimulator(counts int, runs time.Duration) *simulator {
	s := &simulator{hashed: map[uint64]*queue{}, seed: maphash.MakeSeed(), runs: cmp.Or(runs, time.Second)}
	s.Store = memstore.New(memstore.WithClock(s.Time), memstore.WithMaxKeys(counts))
	s.limiter = ratelimit.New(s, ratelimit.WithLogger(slog.New(slog.DiscardHandler)), ratelimit.WithObserver(s.observe))
	return s
}

// prepare prepares the rules of a method. It changes them so that a full store is an error.
func (s *simulator) prepare(method string, rules []ratelimit.Rule) (prepared, error) {
	for i := range rules {
		rules[i].OnError = ratelimit.FailClosed
		s.releases = s.releases || rules[i].Releases()
	}
	if _, err := ratelimit.Prepare(method, rules...); err != nil {
		return prepared{}, err
	}
	p := wrap.NewRules(method, rules...)
	return prepared{p, p.On(s.limiter)}, nil
}

// observe keeps a decision.
func (s *simulator) observe(_ context.Context, e *ratelimit.Event) {
	if e.Kind == ratelimit.EventAdmitted || e.Kind == ratelimit.EventRefused {
		rules := append(s.event.Rules[:0], e.Rules...)
		s.event = *e
		s.event.Rules = rules
	}
}

// Time implements ratelimit.Store.
func (s *simulator) Time() time.Time { return s.now }

// Since implements ratelimit.Store.
func (s *simulator) Since(t time.Time) time.Duration { return s.now.Sub(t) }

// Sleep implements ratelimit.Store. It lets other calls run until d has passed. If calls release permits, which may end ctx, it looks every 50 ms.
func (s *simulator) Sleep(ctx context.Context, d time.Duration, placed bool) {
	if placed {
		return
	}
	c, end, step := s.current, s.now.Add(d), d
	if s.releases {
		step = 50 * time.Millisecond
	}
	for ctx.Err() == nil && s.now.Before(end) {
		if !c.sleep(s.now.Add(min(step, end.Sub(s.now)))) {
			return
		}
	}
}

// decide decides a call. It calls decided with the event at once, or later if the call sleeps. The charges may change when decide returns.
func (s *simulator) decide(ctx context.Context, p prepared, charges []wrap.Charge, decided func(*ratelimit.Event, error) error) error {
	if len(s.idle) == 0 {
		s.idle = append(s.idle, s.newCaller(ctx))
	}
	c := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	c.prepared, c.charges, c.decided = p, charges, decided
	if c.wake = s.resume(c); c.wake.IsZero() {
		return c.err
	}
	s.queueUp(c)
	return nil
}

// newCaller returns a caller that decides one call after the other, under one context.
func (s *simulator) newCaller(ctx context.Context) *caller {
	c := new(caller)
	c.next, c.stop = iter.Pull(func(sleep func(time.Time) bool) {
		c.sleep = sleep
		for more := true; more; more = sleep(time.Time{}) {
			c.err = c.decided(s.begin(ctx, c.prepared, c.charges))
		}
	})
	return c
}

// begin decides a call as generated code does. The event says whether the call was admitted or refused. It is valid until the next one.
func (s *simulator) begin(ctx context.Context, p prepared, charges []wrap.Charge) (*ratelimit.Event, error) {
	s.event = ratelimit.Event{Rules: s.event.Rules[:0]} // without rules, the limiter observes nothing
	taken, err := wrap.Begin(ctx, p.limits, p.rules, charges...)
	never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err)
	switch {
	case err == nil:
		s.start(taken)
	case ok: // the limiter only observes that there is no decision
		s.event = ratelimit.Event{Kind: ratelimit.EventRefused, Rules: append(s.event.Rules[:0], ratelimit.Outcome{Rule: never.Rule, Refused: true, Never: true})}
	case !errors.Is(err, ratelimit.ErrTooManyRequests):
		return nil, err
	}
	return &s.event, nil
}

// queueUp adds a sleeping call to the queue of equal calls.
func (s *simulator) queueUp(c *caller) {
	s.slept++
	c.order = s.slept
	hash := s.hash(c)
	if q := s.hashed[hash]; q != nil {
		q.sleepers = append(q.sleepers, c)
		return
	}
	q := &queue{hash, []*caller{c}}
	s.hashed[hash] = q
	heap.Push(&s.queues, q)
}

// hash returns the hash of what a call charges.
func (s *simulator) hash(c *caller) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	maphash.WriteComparable(&h, c.prepared)
	for _, charge := range c.charges {
		maphash.WriteComparable(&h, charge)
	}
	return h.Sum64()
}

// resume runs a call until it sleeps, and returns the time at which it wakes. If the call is decided, it returns zero.
func (s *simulator) resume(c *caller) time.Time {
	s.current = c
	wake, _ := c.next()
	if wake.IsZero() {
		s.idle = append(s.idle, c)
	}
	return wake
}

// wakeUntil wakes the calls that wake up to the time end, each at its time.
func (s *simulator) wakeUntil(ctx context.Context, end time.Time) error {
	for len(s.queues) > 0 && !s.queues[0].sleepers[0].wake.After(end) {
		wake := s.queues[0].sleepers[0].wake
		s.endUntil(wake)
		if err := s.wakeFirst(s.queues[0]); err != nil {
			return err
		}
	}
	if end != longest {
		s.endUntil(end)
		s.now = end
	}
	return ctx.Err()
}

// endUntil ends the calls that run up to a time, each at its time.
func (s *simulator) endUntil(end time.Time) {
	for len(s.running) > 0 && !s.running[0].end.After(end) {
		s.now = s.running[0].end
		s.running[0].taken.Release(context.Background())
		s.running = s.running[1:]
	}
}

// wakeFirst lets the first call of q ask again. The queue q must be the one that wakes first.
func (s *simulator) wakeFirst(q *queue) error {
	c := q.sleepers[0]
	s.now = c.wake
	if c.wake = s.resume(c); !c.wake.IsZero() {
		heap.Fix(&s.queues, 0)
		return nil
	}
	if q.sleepers = q.sleepers[1:]; len(q.sleepers) == 0 {
		heap.Pop(&s.queues)
		delete(s.hashed, q.hash)
		return c.err
	}
	if next := q.sleepers[0]; next.wake.Before(s.now) {
		next.wake = s.now
	}
	heap.Fix(&s.queues, 0)
	return c.err
}

// start lets an admitted call run, if calls release permits.
func (s *simulator) start(taken *wrap.Taken) {
	if s.releases {
		s.running = append(s.running, running{s.now.Add(s.runs), taken})
	}
}

// stop ends the coroutines. The context of the calls that still sleep has ended.
func (s *simulator) stop() {
	left := s.idle
	for _, q := range s.queues {
		left = append(left, q.sleepers...)
	}
	for _, c := range left {
		s.current = c
		c.stop()
	}
}

// queues is a heap of queues, ordered by the times at which their first calls wake.
type queues []*queue

func (q queues) Len() int { return len(q) }

func (q queues) Less(i, j int) bool {
	a, b := q[i].sleepers[0], q[j].sleepers[0]
	return a.wake.Before(b.wake) || a.wake.Equal(b.wake) && a.order < b.order
}
func (q queues) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queues) Push(x any) { *q = append(*q, x.(*queue)) }

func (q *queues) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
