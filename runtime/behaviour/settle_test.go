package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

type usage struct{ Total int64 }

// seller has a cost that is known after the call.
type seller interface {
	// sell settles the first rule also if it fails, and gives the second one back then.
	//
	//ratelimit:rule name=used key="{user}" limit=100000 per=3000h algorithm=fixed-window cost=50 settle="usage?.Total ?? 7"
	//ratelimit:rule name=sold key="{user}" limit=100000 per=3000h algorithm=fixed-window cost=40 settle="usage.Total" refund=error
	//ratelimit:rule name=tries key="{user}" limit=10000 per=3000h algorithm=fixed-window
	sell(ctx context.Context, user string) (usage *usage, err error)
}

type sellerFunc func() (*usage, error)

func (f sellerFunc) sell(context.Context, string) (*usage, error) { return f() }

// A generated wrapper settles a call that fails, too, but with refund=error gives it back. If a cost cannot be computed, its estimate stays.
// The results are those of the method, and an ended context changes nothing.
func TestSettlementsOfAWrapper(t *testing.T) {
	failed := errors.New("failed")
	onPlainToo(t, func(t *testing.T, s *subject) {
		for name, test := range map[string]struct {
			used, sold int64
			usage      *usage
			err        error
		}{
			"success":           {120, 120, &usage{120}, nil},
			"success for less":  {1, 1, &usage{1}, nil},
			"free":              {0, 0, &usage{0}, nil},
			"failure":           {120, 0, &usage{120}, failed},
			"failure at once":   {7, 0, nil, failed},
			"no usage":          {7, 40, nil, nil},
			"negative":          {50, 40, &usage{-1}, nil},
			"failed and costed": {100_050, 0, &usage{100_050}, failed},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			limited := newLimitedSeller(sellerFunc(func() (*usage, error) {
				cancel()
				return test.usage, test.err
			}), s.limiter)
			got, err := limited.sell(ctx, name)
			if got != test.usage || err != test.err {
				t.Errorf("%s: got %v, %v", name, got, err)
			}
			for i, want := range []int64{min(test.used, 100_000), test.sold, 1} {
				rule := sellerRules()[i]
				if used := rule.Limit - s.left(t, ratelimit.Request{Rule: rule, Key: name}); used != want {
					t.Errorf("%s: %d permits of %s are charged, want %d", name, used, rule.Name, want)
				}
			}
		}
	})
}

// If the method panics, what refund=error has taken goes back, and the other estimates stay.
func TestWrapperOfAPanic(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		func() {
			defer func() {
				if recover() != "gone" {
					t.Error("the panic did not come through")
				}
			}()
			_, _ = newLimitedSeller(sellerFunc(func() (*usage, error) { panic("gone") }), s.limiter).sell(t.Context(), "ann")
		}()
		for i, want := range []int64{50, 0, 1} {
			rule := sellerRules()[i]
			if used := rule.Limit - s.left(t, ratelimit.Request{Rule: rule, Key: "ann"}); used != want {
				t.Errorf("%d permits of %s are charged, want %d", used, rule.Name, want)
			}
		}
	})
}

// clerk has rules that apply to some calls.
type clerk interface {
	//ratelimit:rule name=long  key="{user}" limit=1000 per=3000h when="isLong" cost=50 settle="usage.costOf(\"long\")" pause="usage.delayOf(\"long\")"
	//ratelimit:rule name=some  key="{user}" limit=1000 per=3000h cost="some" settle="usage.costOf(\"some\")"
	//ratelimit:rule name=short key="{user}" limit=1000 per=3000h cost=5 settle="usage.costOf(\"short\")" pause="usage.delayOf(\"short\")"
	ask(ctx context.Context, user string, isLong bool, some int) (usage *usages, err error)
}

// usages have the real costs of a call, and note of which rules they were asked.
type usages struct {
	costs map[string]int64
	asked []string
}

func (u *usages) costOf(rule string) int64 {
	u.asked = append(u.asked, rule)
	cost, known := u.costs[rule]
	if !known {
		panic("no usage")
	}
	return cost
}

func (u *usages) delayOf(rule string) time.Duration {
	u.asked = append(u.asked, "pause of "+rule)
	return 0
}

type clerkFunc func() *usages

func (f clerkFunc) ask(context.Context, string, bool, int) (*usages, error) { return f(), nil }

// What a rule computes after the call is computed if the rule applies to the call. A rule whose cost cannot be computed keeps its estimate, and
// the others are settled.
func TestSettlementsOfRulesThatApply(t *testing.T) {
	type left = map[string]int64
	tests := map[string]struct {
		isLong   bool
		some     int
		costs    left
		computed []string
		left     left
		failed   []string
	}{
		"all": {
			true, 20, left{"long": 60, "some": 1, "short": 2}, []string{"pause of long", "pause of short", "long", "some", "short"},
			left{"long": 940, "some": 999, "short": 998}, nil,
		},
		"when= is false": {
			false, 20, left{"some": 1, "short": 2}, []string{"pause of short", "some", "short"},
			left{"long": 1000, "some": 999, "short": 998}, nil,
		},
		"cost= is 0": {
			false, 0, left{"some": 1, "short": 2}, []string{"pause of short", "some", "short"},
			left{"long": 1000, "some": 999, "short": 998}, nil,
		},
		"one cannot be computed": {
			true, 20, left{"some": 1, "short": 2}, []string{"pause of long", "pause of short", "long", "some", "short"},
			left{"long": 950, "some": 999, "short": 998}, []string{"long"},
		},
		"one is negative": {
			true, 20, left{"long": 60, "some": -1, "short": 2}, []string{"pause of long", "pause of short", "long", "some", "short"},
			left{"long": 940, "some": 980, "short": 998}, []string{"some"},
		},
	}
	onEveryStore(t, func(t *testing.T, s *subject) {
		for name, test := range tests {
			var failed []string
			l := ratelimit.New(s.store, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
				for _, o := range e.Rules {
					if e.Err != nil {
						failed = append(failed, o.Rule)
					}
				}
			}))
			given := &usages{costs: test.costs}
			if _, err := newLimitedClerk(clerkFunc(func() *usages { return given }), l).ask(t.Context(), name, test.isLong, test.some); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(given.asked, test.computed) {
				t.Errorf("%s: computed %q, want %q", name, given.asked, test.computed)
			}
			if !slices.Equal(failed, test.failed) {
				t.Errorf("%s: observers are told that %q failed, want %q", name, failed, test.failed)
			}
			for _, rule := range clerkRules() {
				if left := s.left(t, ratelimit.Request{Rule: rule, Key: name}); left != test.left[rule.Name] {
					t.Errorf("%s: %d permits of %s are left, want %d", name, left, rule.Name, test.left[rule.Name])
				}
			}
		}
	})
}

// What a settlement took goes back, too, in a window that records it at a later time because it has many calls.
func TestRefundOfASettlementInAFullWindow(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "tokens", Limit: 1_000_000, Per: time.Hour}, Key: "ann"}
		for range 2100 { // from 2,048 on, several calls have one entry
			s.admit(t, q)
			s.pass(time.Microsecond)
		}
		before := s.left(t, q)
		d := s.admit(t, q)
		if err := d.Settle(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		if err := d.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := s.left(t, q); left != before {
			t.Errorf("%d are left, want %d", left, before)
		}
	})
}
