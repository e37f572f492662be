package behaviour_test

import (
	"context"
	"errors"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

type usage struct{ Total int64 }

// seller has a cost that is known after the call.
type seller interface {
	// sell settles the first rule also if it fails, and gives the second one back then.
	//
	//ratelimit:rule name=used key="{user}" limit=100000 per=3000h cost=50 settle="usage?.Total ?? 7"
	//ratelimit:rule name=sold key="{user}" limit=100000 per=3000h cost=40 settle="usage.Total" refund=error
	//ratelimit:rule name=tries key="{user}" limit=10000 per=3000h
	sell(ctx context.Context, user string) (usage *usage, err error)
}

type sellerFunc func() (*usage, error)

func (f sellerFunc) sell(context.Context, string) (*usage, error) { return f() }

// A generated wrapper settles a call that fails, too, but with refund=error gives it back. If a cost cannot be computed, all estimates stay.
// The results are those of the method, and an ended context changes nothing.
func TestSettlementsOfAWrapper(t *testing.T) {
	failed := errors.New("failed")
	onEveryStore(t, func(t *testing.T, s *subject) {
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
			"no usage":          {50, 40, nil, nil},
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
	onEveryStore(t, func(t *testing.T, s *subject) {
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
