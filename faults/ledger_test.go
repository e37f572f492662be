package faults

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// rules has a rule of each algorithm, so short that some hundred windows pass in a test.
func rules() []ratelimit.Rule {
	const per = 60 * time.Millisecond
	return []ratelimit.Rule{
		{Name: "sliding", Limit: 6, Per: per},
		{Name: "fixed", Limit: 6, Per: per, Algorithm: ratelimit.FixedWindow},
		{Name: "calendar", Limit: 20, Cron: "* * * * * *"},
		{Name: "token", Limit: 6, Per: per, Burst: 8, Algorithm: ratelimit.TokenBucket},
		{Name: "leaky", Limit: 6, Per: per, Algorithm: ratelimit.LeakyBucket},
		{Name: "counter", Limit: 6, Per: per, Slices: 6, Algorithm: ratelimit.SlidingCounter},
		{Name: "prepaid", Limit: 6, Per: per, Prepay: true, Algorithm: ratelimit.TokenBucket},
		{Name: "warmup", Limit: 6, Per: per, Warmup: per / 4, Algorithm: ratelimit.TokenBucket},
	}
}

// running is the rule of the calls that run in every load.
var running = ratelimit.Rule{Name: "running", Limit: 2, Per: 3 * time.Second, Algorithm: ratelimit.Concurrency}

// leased has rules whose permits may be taken ahead.
func leased() []ratelimit.Rule {
	const per, lease = 300 * time.Millisecond, 100 * time.Millisecond
	return []ratelimit.Rule{
		{Name: "leased-sliding", Limit: 12, Per: per, Lease: lease},
		{Name: "leased-fixed", Limit: 12, Per: per, Algorithm: ratelimit.FixedWindow, Lease: lease},
		{Name: "leased-calendar", Limit: 40, Cron: "* * * * * *", Lease: lease},
		{Name: "leased-token", Limit: 12, Per: per, Burst: 15, Algorithm: ratelimit.TokenBucket, Lease: lease},
	}
}

var keys = []string{"a", "b"}

// press makes calls under the rules for a time, and calls that run. Some callers of an impatient crowd give up soon.
func press(b *Book, limiter *ratelimit.Limiter, d time.Duration, rules []ratelimit.Rule, impatient bool) {
	var runners sync.WaitGroup
	defer runners.Wait()
	runners.Go(func() {
		Press(d, 6, func(ctx context.Context, _, n int) {
			q := ratelimit.Request{Rule: running, Key: keys[n%len(keys)], Cost: 1 + int64(n%7/6)}
			b.Run(ctx, limiter.Allow, rand.N(20*time.Millisecond), q)
			time.Sleep(rand.N(10 * time.Millisecond))
		})
	})
	Press(d, 8, func(ctx context.Context, caller, n int) {
		if impatient && n%2 == 0 {
			ended, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(1000))*time.Microsecond)
			defer cancel()
			ctx = ended
		}
		q := ratelimit.Request{Rule: rules[(caller+n)%len(rules)], Key: keys[n%len(keys)], Cost: 1 + int64(n%7/6)}
		if q.Rule.Algorithm == ratelimit.LeakyBucket {
			q.Cost = 1
		}
		b.Call(ctx, limiter.Allow, q)
		time.Sleep(time.Millisecond)
	})
}

// audit compares the book with the laws of all rules.
func audit(t *testing.T, b *Book, rules []ratelimit.Rule) {
	t.Helper()
	t.Logf("%d calls were admitted, %d refused, and of %d it is unknown", b.Count(Admitted), b.Count(Refused), b.Count(Unknown))
	for _, rule := range append(rules, running) {
		for _, key := range keys {
			entries := b.Of(rule.Name, key)
			if err := Audit(LawOf(rule, entries), entries); err != nil {
				t.Errorf("%s of %s: %v", rule.Name, key, err)
			}
		}
	}
}

// The ledger accepts what a limiter does whose limits are right, and rejects it where a limit is one too high or too low.
func TestLedgerRejectsAnotherLimit(t *testing.T) {
	var b Book
	press(&b, ratelimit.New(memstore.New()), 1500*time.Millisecond, rules(), false)
	audit(t, &b, rules())
	for _, rule := range append(rules(), running) {
		for _, by := range []int64{-1, +1} {
			other := rule
			other.Limit += by
			if rule.Burst > 0 {
				other.Burst += by
			}
			accepted := 0
			for _, key := range keys {
				entries := b.Of(rule.Name, key)
				if Audit(LawOf(other, entries), entries) == nil {
					accepted++
				}
			}
			if accepted == len(keys) && !(by > 0 && LawOf(rule, nil).isLoose()) {
				t.Errorf("%s: the calls of a limit of %d pass for %d", rule.Name, rule.Limit, other.Limit)
			}
		}
	}
}

// isLoose reports whether the law permits refusals that the definition might not.
func (l Law) isLoose() bool { return l.Most(0, 1_000_000) != l.Least(0, 1_000_000) }

// longestSpan is how much of the past a charge can exceed a limit with, in microseconds; of buckets it is as much as a test looks at.
const longestSpan = 2_000_000

// requireNoExcess checks that nobody got too much, by the times that the server told. Refusals tell where fixed windows end.
func requireNoExcess(t *testing.T, rule ratelimit.Rule, key string, entries []Entry) {
	t.Helper()
	var charges []charge
	for _, e := range entries {
		if e.Outcome == Admitted {
			charges = append(charges, charge{e.Cost, e.At, e.At})
		}
	}
	sortCharges(charges)
	law := LawOf(rule, entries)
	if law.Span == 0 {
		law.Span = longestSpan
	}
	if err := law.checkMost(charges); err != nil {
		t.Errorf("%s of %s: %v", rule.Name, key, err)
	}
}
