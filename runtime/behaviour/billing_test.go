package behaviour_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// bill adds up the costs of events, by rule and key.
type bill struct {
	mu     sync.Mutex
	permit map[string]int64
	last   ratelimit.Event
}

func (b *bill) observe(_ context.Context, e *ratelimit.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = *e
	b.last.Rules = slices.Clone(e.Rules)
	switch e.Kind {
	case ratelimit.EventAdmitted, ratelimit.EventAdded, ratelimit.EventRefunded, ratelimit.EventSettled:
		for _, o := range e.Rules {
			if !o.Refused {
				b.permit[o.Rule+" "+o.Key] += o.Cost - o.CostBefore
			}
		}
	}
}

// billed returns a subject on the same store, and a bill. Each event of the subject is added to the bill.
func billed(s *subject) (*subject, *bill) {
	b := &bill{permit: map[string]int64{}}
	return s.with(ratelimit.New(s.store, ratelimit.WithObserver(b.observe))), b
}

// used returns how many permits the store has counted under a rule. A limit that none of these tests reaches shows all of them. Buckets gain a
// small part of a permit meanwhile, and lose such parts when permits are given back, so theirs are rounded.
func (s *subject) used(t *testing.T, r ratelimit.Rule, key string) int64 {
	t.Helper()
	r.Mode = ratelimit.ModeEnforce
	q := ratelimit.Request{Rule: r, Key: key}
	if r.Distinct != "" {
		q.Member = "nobody"
	}
	if isBucket(r) {
		perPermit := r.Per / time.Duration(r.Limit)
		return int64((s.peek(t, q).Quotas[0].Reset + perPermit/2) / perPermit)
	}
	q.Rule.Limit = 10_000
	return q.Rule.Limit - s.peek(t, q).Quotas[0].Remaining
}

func isBucket(r ratelimit.Rule) bool { return r.Algorithm == ratelimit.TokenBucket }

const long = 3000 * time.Hour // so that no permit comes back during a test

// queue is a rule that calls wait for.
var queue = ratelimit.Rule{Name: "queue", Algorithm: ratelimit.TokenBucket, Limit: 2, Per: long}

// billable are rules of all kinds. Some refuse soon, and none is ever used up in a way that a store forgets.
var billable = []ratelimit.Rule{
	{Name: "sliding", Limit: 10_000, Per: long},
	{Name: "fixed", Limit: 20, Per: long, Algorithm: ratelimit.FixedWindow},
	{Name: "calendar", Limit: 10_000, Cron: yearly},
	{Name: "bucket", Limit: 10_000, Per: long, Algorithm: ratelimit.TokenBucket},
	{Name: "prepaid", Limit: 10_000, Per: long, Algorithm: ratelimit.TokenBucket, Prepay: true},
	{Name: "counter", Limit: 10_000, Per: long, Algorithm: ratelimit.SlidingCounter},
	{Name: "distinct", Limit: 10_000, Per: long, Distinct: "{who}"},
	{Name: "shadow", Limit: 7, Per: long, Algorithm: ratelimit.FixedWindow, Mode: ratelimit.ModeShadow},
	{Name: "none", Per: long, Mode: ratelimit.ModeShadow},
	{Name: "trigger", Limit: 7, Per: long, Algorithm: ratelimit.FixedWindow, Mode: ratelimit.ModeTrigger},
	{Name: "here", Limit: 40, Per: long, Scope: ratelimit.ScopeInstance, Algorithm: ratelimit.FixedWindow},
}

// client makes random calls with a bill.
type client struct {
	*subject
	rules   []ratelimit.Rule
	t       *testing.T
	r       *rapid.T
	key     string
	open    []ratelimit.Decision
	request [][]ratelimit.Request
}

// requests returns requests of some of the rules. upTo leaves out rules with which UpTo does not go.
func (c *client) requests(upTo bool) (call []ratelimit.Request) {
	cost := rapid.Int64Range(1, 5).Draw(c.r, "cost")
	for _, rule := range rapid.SliceOfNDistinct(rapid.SampledFrom(c.rules), 1, 4, func(r ratelimit.Rule) string { return r.Name }).Draw(c.r, "rules") {
		q := ratelimit.Request{Rule: rule, Key: c.key, UpTo: upTo, Cost: cost}
		switch {
		case upTo && (rule.Distinct != "" || rule.Prepay):
			continue
		case rule.Distinct != "":
			q.Cost, q.Member = 1, rapid.SampledFrom([]string{"ann", "bob", "cleo"}).Draw(c.r, "member")
		case !upTo:
			q.Cost = rapid.Int64Range(1, 5).Draw(c.r, "its cost")
		}
		call = append(call, q)
	}
	return call
}

func (c *client) ask() {
	call := c.requests(rapid.IntRange(0, 3).Draw(c.r, "up to") == 0)
	if len(call) == 0 {
		return
	}
	if d := c.allow(c.t, call...); d.Allowed {
		c.open, c.request = append(c.open, d), append(c.request, call)
	}
}

func (c *client) change() {
	if len(c.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.open)-1).Draw(c.r, "which")
	var err error
	if rapid.Bool().Draw(c.r, "refund") {
		err = c.open[i].Refund(c.t.Context())
	} else {
		costs := rapid.SliceOfN(rapid.Int64Range(0, 9), len(c.request[i]), len(c.request[i])).Draw(c.r, "costs")
		err = c.open[i].Settle(c.t.Context(), costs...)
	}
	if err != nil {
		c.r.Fatal(err)
	}
}

// wrapped makes the call of a wrapper that grows, settles some rules, and refunds the others if it fails.
func (c *client) wrapped() {
	var rules []ratelimit.Rule
	var charges []wrap.Charge
	var costs []int64
	for _, q := range c.requests(false) {
		if rapid.Bool().Draw(c.r, "refunds") {
			q.Rule.Refund = ratelimit.RefundError
		}
		rules, charges = append(rules, q.Rule), append(charges, wrap.Charge{Key: c.key, Cost: q.Cost, Member: q.Member})
		costs = append(costs, rapid.SampledFrom([]int64{wrap.Keep, 0, 1, 3, 9}).Draw(c.r, "cost"))
	}
	method := wrap.NewRules("p.T.M", rules...).WithCost()
	ctx, charge := ratelimit.WithCharge(c.t.Context())
	taken, err := wrap.Begin(ctx, method.On(c.limiter), method, charges...)
	if err != nil {
		return // a refusal
	}
	for range rapid.IntRange(0, 3).Draw(c.r, "adds") {
		_ = charge.Add(ctx, rapid.Int64Range(1, 5).Draw(c.r, "more")) // a refusal, perhaps, or no rule can be settled
	}
	switch rapid.IntRange(0, 2).Draw(c.r, "then") {
	case 0:
		taken.Settle(c.t.Context(), costs...)
	case 1:
		taken.RefundUnless(c.t.Context(), new(bool))
	case 2:
		taken.SettleFailed(c.t.Context(), 0, fmt.Errorf("no usage"))
	}
}

// abandon makes a call that gives up while it waits.
func (c *client) abandon() {
	q := ratelimit.Request{Rule: queue, Key: c.key}
	for c.allow(c.t, q).Allowed {
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	gone := c.waitInPlace(c.t, ctx, 1, q, ratelimit.Request{Rule: billable[0], Key: c.key, Cost: 3})
	cancel()
	<-gone
	c.until(c.t, q, func(waiting int64) bool { return waiting == 0 }) // a store that is slow gives the place back later
}

// waitInPlace begins a call that waits, as the n-th one, and returns when it has its place. The channel is closed when the call ends.
func (s *subject) waitInPlace(t *testing.T, ctx context.Context, n int64, requests ...ratelimit.Request) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := s.limiter.Wait(ctx, requests...); ctx.Err() == nil {
			t.Errorf("the call did not wait: %v", err)
		}
	}()
	s.until(t, requests[0], func(waiting int64) bool { return waiting == n })
	return gone
}

// until returns when the number of places behind a bucket that is empty is as wanted.
func (s *subject) until(t *testing.T, q ratelimit.Request, is func(waiting int64) bool) {
	t.Helper()
	for range 10_000 {
		if is((int64(s.peek(t, q).RetryAfter)*q.Rule.Limit - 1) / int64(long)) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the places do not become as expected")
}

// An observer that adds up the costs of events has what the store has, whatever is called, settled, given back and abandoned.
func TestBillEqualsTheLedger(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		s, b := billed(s)
		n, rules, ledger := 0, s.known(billable...), s.known(append(billable, queue)...)
		rapid.Check(t, func(r *rapid.T) {
			n++
			c := &client{subject: s, t: t, r: r, key: fmt.Sprint("k", n), rules: rules}
			what := []func(){c.ask, c.ask, c.change, c.wrapped}
			if s.knows(queue) {
				what = append(what, c.abandon)
			}
			for range rapid.IntRange(1, 15).Draw(r, "calls") {
				rapid.SampledFrom(what).Draw(r, "what")()
			}
			for _, rule := range ledger {
				if told, has := b.permit[rule.Name+" "+c.key], s.used(t, rule, c.key); rule.Limit > 0 && told != has {
					r.Fatalf("%s: the bill has %d permits, the store %d", rule.Name, told, has)
				}
			}
		})
	})
}

// Calls of many goroutines that are sent together, and of which some are refused, have a bill, too.
func TestBillOfManyCallers(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		s, b := billed(s)
		rule := ratelimit.Rule{Name: "r", Limit: 150, Per: long, Algorithm: ratelimit.FixedWindow}
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for n := range 10 {
					d, err := s.limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "k"})
					if err == nil && (i+n)%3 == 0 {
						err = d.Refund(context.Background())
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if told, has := b.permit["r k"], s.used(t, rule, "k"); told != has || told == 0 {
			t.Errorf("the bill has %d permits, the store %d", told, has)
		}
	})
}

// A call that gives up before another one that waits costs nothing, although its place stays charged until a later call uses it.
func TestBillOfAPlaceThatBecameFree(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		s, b := billed(s)
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "b", Algorithm: ratelimit.LeakyBucket, Limit: 1, Per: long}, Key: "k"}
		s.admit(t, q)
		first, stop := context.WithCancel(t.Context())
		defer stop()
		last, end := context.WithCancel(t.Context())
		defer end()
		gone, after := s.waitInPlace(t, first, 1, q), s.waitInPlace(t, last, 2, q)
		stop()
		<-gone
		want := ratelimit.Outcome{Rule: "b", Window: q.Rule.Window(), Key: "k", Limit: 1, CostBefore: 1, Waits: true}
		if e := b.last; e.Kind != ratelimit.EventAbandoned || !slices.Equal(e.Rules, []ratelimit.Outcome{want}) {
			t.Errorf("told as %+v", e)
		}
		s.until(t, q, func(waiting int64) bool { return waiting == 2 }) // the place is still charged
		if b.permit["b k"] != 1 {
			t.Errorf("the bill is %v", b.permit)
		}
		end()
		<-after
	})
}
