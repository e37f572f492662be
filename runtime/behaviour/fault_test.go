package behaviour_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// requireSpacing makes calls until enough of them were rightly refused, and checks that no two admissions are too close. It makes two calls at
// the same time: if they came one after the other, a period of less than a millisecond might pass between them.
func requireSpacing(t *testing.T, s *subject, q ratelimit.Request, apart time.Duration) {
	t.Helper()
	var last time.Time
	for refused, rounds := 0, 0; refused < 7; rounds++ {
		if rounds == 10_000 {
			t.Fatalf("%s %v: refused %d times only", q.Rule.Name, q.Rule.Per, refused)
		}
		var retry time.Duration
		for _, d := range s.atOnce(t, q) {
			if !d.Allowed {
				refused++
				retry = d.RetryAfter
				continue
			}
			if since := d.At.Sub(last); since < apart {
				t.Fatalf("%s %v: two calls admitted within %v", q.Rule.Name, q.Rule.Per, since)
			}
			last = d.At
		}
		s.near(retry)
	}
}

// atOnce makes two calls at the same time and returns the decisions, in the order of their times.
func (s *subject) atOnce(t *testing.T, q ratelimit.Request) [2]ratelimit.Decision {
	t.Helper()
	var made [2]ratelimit.Decision
	var both sync.WaitGroup
	for i := range made {
		both.Go(func() {
			var err error
			if made[i], err = s.limiter.Allow(context.Background(), q); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if made[1].At.Before(made[0].At) {
		made[0], made[1] = made[1], made[0]
	}
	return made
}

func TestFault_CostAboveBurstToldToRetry(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		fits := ratelimit.Request{Rule: window("other", 9, s.window), Key: rule.Name}
		for _, requests := range [][]ratelimit.Request{
			{{Rule: rule, Key: "k", Cost: 4}},
			{{Rule: rule, Key: "k", Cost: 1 << 40}},
			{fits, {Rule: rule, Key: "k", Cost: 4}},
			{{Rule: rule, Key: "k", Cost: 4}, fits},
		} {
			d, err := s.limiter.Allow(context.Background(), requests...)
			if _, never := errors.AsType[*ratelimit.NeverAdmissibleError](err); !never || d.Allowed || errors.Is(err, ratelimit.ErrTooManyRequests) {
				t.Errorf("%+v: got %+v, error %v; want a *NeverAdmissibleError", requests, d, err)
			}
		}
		if left := s.left(t, fits); left != 9 {
			t.Errorf("the other rule was charged: %d of 9 permits left", left)
		}
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 3})
	})
}

func TestFault_BurstIsWhatABucketCanAdmit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 2, Burst: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, Key: "k", Cost: 6}
		_, err := s.limiter.Allow(context.Background(), q)
		if _, never := errors.AsType[*ratelimit.NeverAdmissibleError](err); !never {
			t.Errorf("6 of a burst of 5: got error %v, want a *NeverAdmissibleError", err)
		}
		q.Cost = 5
		s.admit(t, q)
	})
}

func TestFault_RefusedCallConsumes(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k"}
		for range 3 {
			s.admit(t, q)
		}
		first := s.refuse(t, q)
		for range 20 {
			s.pass(100 * time.Microsecond)
			d := s.refuse(t, q)
			if end, want := d.At.Add(d.RetryAfter), first.At.Add(first.RetryAfter); !end.Equal(want) {
				t.Fatalf("refused calls moved the end of the delay from %v to %v", want, end)
			}
		}
	})
}

// A refund removes its own permits from the log, not the newest ones, and the count agrees with the log.
func TestFault_ReturnLeavesItsLogEntry(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour}, Key: "k"}
		var taken []ratelimit.Decision
		for range 3 {
			taken = append(taken, s.admit(t, q))
			s.pass(2 * time.Millisecond)
		}
		if err := taken[1].Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		fourth := s.admit(t, q)
		d := s.refuse(t, q)
		if want := taken[0].At.Add(time.Hour); !d.At.Add(d.RetryAfter).Equal(want) {
			t.Errorf("retry at %v, want an hour after the first call, %v", d.At.Add(d.RetryAfter), want)
		}
		for _, d := range []ratelimit.Decision{taken[0], taken[2], fourth} {
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.left(t, q); left != 3 {
			t.Errorf("%d of 3 permits left after all were returned", left)
		}
	})
}

// Many calls and refunds in the same microsecond are all counted, although nothing distinguishes them.
func TestFault_MemberCollisions(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		rule.Limit = 500
		q := ratelimit.Request{Rule: rule, Key: "k", Cost: 50}
		for range 10 {
			s.admit(t, q)
		}
		s.refuse(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 50})
	})
}

// Neither admitted nor refused calls extend a fixed window.
func TestFault_HitsProlongTheWindow(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		const per = 60 * time.Millisecond
		for round := range 5 {
			q := ratelimit.Request{Rule: window("r", 5, ratelimit.FixedWindow), Key: strconv.Itoa(round)}
			q.Rule.Per = per
			first, told := s.admit(t, q).At, false
			end := first.Add(per)
			d := s.allow(t, q)
			for ; d.At.Before(end); d = s.allow(t, q) {
				switch retry := d.At.Add(d.RetryAfter); {
				case d.Allowed:
				case !told:
					s.requireEnd(t, d, first, per)
					end, told = retry, true
				case !retry.Equal(end):
					t.Fatalf("refused until %v by a window that ends at %v", retry, end)
				}
				s.pass(time.Millisecond)
			}
			if told && !d.Allowed {
				t.Fatalf("refused at %v by a window that ends at %v", d.At, end)
			}
		}
	})
}

// The window that a refunded call opened stays open, and the next call does not open another.
func TestFault_FirstHitKnownByItsValue(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 2, Per: time.Hour, Algorithm: ratelimit.FixedWindow}, Key: "k"}
		first := s.admit(t, q)
		if err := first.Refund(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.pass(5 * time.Millisecond)
		s.admit(t, q)
		s.admit(t, q)
		s.requireEnd(t, s.refuse(t, q), first.At, time.Hour)
	})
}

func TestFault_RulesOfOneKeyAndWindow(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		other := rule
		other.Name += ".another"
		for range 3 {
			s.admit(t, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: other, Key: "k"})
		}
		s.refuse(t, ratelimit.Request{Rule: rule, Key: "k"}, ratelimit.Request{Rule: other, Key: "k"})
	})
}

// A call that asks one budget twice takes two permits, and never more than are left.
func TestFault_OneBudgetTwiceInACall(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		q := ratelimit.Request{Rule: rule, Key: "k"}
		admitted := 0
		for range 3 {
			d, err := s.limiter.Allow(context.Background(), q, q)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted += 2
			}
		}
		if left := int(s.left(t, q)); admitted != 2 || left != 1 {
			t.Errorf("%d permits of 3 were admitted, %d are left; expected 2 and 1", admitted, left)
		}
	})
}

func TestFault_HighRatesNeverLimit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, rule := range []ratelimit.Rule{
			{Name: "thousand", Limit: 1000, Burst: 1, Per: time.Second, Algorithm: ratelimit.TokenBucket},
			{Name: "three-thousand", Limit: 3000, Burst: 1, Per: time.Second, Algorithm: ratelimit.TokenBucket},
		} {
			requireSpacing(t, s, ratelimit.Request{Rule: rule, Key: "k"}, rule.Per/time.Duration(rule.Limit))
		}
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "million", Limit: 1_000_000, Per: time.Second, Algorithm: ratelimit.TokenBucket}, Key: "k", Cost: 1_000_000}
		last, next := s.admit(t, q), s.allow(t, q)
		for ; next.Allowed; last, next = next, s.allow(t, q) { // right if a second has passed
			if since := next.At.Sub(last.At); since < q.Rule.Per {
				t.Fatalf("a million calls a second, twice within %v", since)
			}
		}
	})
}

func TestFault_SlowRatesNeverPass(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		for _, per := range []time.Duration{10 * time.Second, time.Hour, 400 * 24 * time.Hour} {
			q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: per, Algorithm: ratelimit.TokenBucket}, Key: "k"}
			first := s.admit(t, q)
			d := s.refuse(t, q)
			if want := first.At.Add(per); !d.At.Add(d.RetryAfter).Equal(want) {
				t.Errorf("one in %v: retry at %v, want %v", per, d.At.Add(d.RetryAfter), want)
			}
		}
	})
}
