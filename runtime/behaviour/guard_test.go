package behaviour_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// shop has the rules of a seller, and one for calls that run. Its method calls a guard.
//
//ratelimit:guard
type shop struct {
	guard *shopGuard
	sells func() (*usage, error)
}

//ratelimit:rule name=used key="{user}" limit=100000 per=3000h algorithm=fixed-window cost=50 settle="usage?.Total ?? 7"
//ratelimit:rule name=sold key="{user}" limit=100000 per=3000h algorithm=fixed-window cost=40 settle="usage.Total" refund=error
//ratelimit:rule name=tries key="{user}" limit=10000 per=3000h algorithm=fixed-window
//ratelimit:rule name=sells key="{user}" algorithm=concurrency limit=1
func (s *shop) sell(ctx context.Context, user string) (usage *usage, err error) {
	done, err := s.guard.sell(ctx, user)
	defer done(&usage, &err)
	if err != nil {
		return nil, err
	}
	return s.sells()
}

// open has no error result, so a refusal is for the method to handle.
//
//ratelimit:rule limit=1 per=3000h
func (s *shop) open() bool { return s.guard.open() == nil }

// In each store a guard charges a call as the wrapper of an interface with the same rules does.
func TestGuardChargesLikeAWrapper(t *testing.T) {
	failed := errors.New("failed")
	onEveryStore(t, func(t *testing.T, s *subject) {
		guarded := &shop{guard: newShopGuard(s.limiter)}
		left := func(user string) (left [3]int64) {
			for i, rule := range sellerRules() {
				left[i] = s.left(t, ratelimit.Request{Rule: rule, Key: user})
			}
			return left
		}
		for n := range 10 {
			user := string(rune('a' + n))
			outcome := func() (*usage, error) { return nil, failed }
			if n > 0 {
				outcome = func() (*usage, error) { return &usage{int64(n * 20)}, map[bool]error{true: failed}[n%2 == 0] }
			}
			guarded.sells = outcome
			sold, err := guarded.sell(t.Context(), user)
			wrapped, wrappedErr := newLimitedSeller(sellerFunc(outcome), s.limiter).sell(t.Context(), user+"2")
			if (sold == nil) != (wrapped == nil) || err != wrappedErr {
				t.Errorf("%d: got %v, %v; a wrapper returns %v, %v", n, sold, err, wrapped, wrappedErr)
			}
			if got, want := left(user), left(user+"2"); got != want {
				t.Errorf("%d: %d permits are left; after a call of a wrapper %d", n, got, want)
			}
		}
	})
}

// However a call ends, its permit of calls that run comes back. After a panic all other charges stay as they are.
func TestGuardReleases(t *testing.T) { onEveryStore(t, requireReleases) }

func requireReleases(t *testing.T, on *subject) {
	s := &shop{guard: newShopGuard(on.limiter)}
	charged := func(name string) int64 {
		for _, rule := range shopRules() {
			if rule.Name == name {
				return rule.Limit - on.peek(t, ratelimit.Request{Rule: rule, Key: "ann"}).Quotas[0].Remaining
			}
		}
		t.Fatalf("no rule %s", name)
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		before := [3]int64{charged("used"), charged("sold"), charged("tries")}
		end := rapid.SampledFrom([]string{"return", "panic", "Goexit", "refusal"}).Draw(t, "end")
		inside := int64(0)
		s.sells = func() (*usage, error) {
			inside = charged("sells")
			switch end {
			case "panic":
				panic(end)
			case "Goexit":
				runtime.Goexit()
			case "refusal":
				_, err := s.guard.sell(context.Background(), "ann")
				if !errors.Is(err, ratelimit.ErrTooManyRequests) {
					t.Errorf("a second call at the same time: %v", err)
				}
			}
			return &usage{3}, nil
		}
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			_, _ = s.sell(context.Background(), "ann")
		}()
		if cause := <-ended; (cause == end) != (end == "panic") {
			t.Fatalf("%s: the call ended with the panic %v", end, cause)
		}
		if after := charged("sells"); inside != 1 || after != 0 {
			t.Fatalf("%s: %d permits were held in the call, and %d after it", end, inside, after)
		}
		want := [3]int64{before[0] + 3, before[1] + 3, before[2] + 1}
		if end == "panic" {
			want = [3]int64{before[0] + 50, before[1] + 40, before[2] + 1}
		}
		if got := [3]int64{charged("used"), charged("sold"), charged("tries")}; got != want && end != "Goexit" {
			t.Fatalf("%s: %d permits are charged, want %d", end, got, want)
		}
	})
}

// A refusal reaches the method also without an error result.
func TestGuardWithoutError(t *testing.T) {
	s := &shop{guard: newShopGuard(ratelimit.New(memstore.New()))}
	if first, second := s.open(), s.open(); !first || second {
		t.Errorf("got %t, %t", first, second)
	}
}

// A guard that is missing says so.
func TestMissingGuard(t *testing.T) {
	for what, f := range map[string]func(){
		"nil":        func() { new(shop).open() },
		"zero":       func() { (&shop{guard: new(shopGuard)}).open() },
		"no limiter": func() { newShopGuard(nil) },
	} {
		want := "guard of runtime/behaviour_test.shop: it is nil, or was not made by its constructor"
		if what == "no limiter" {
			want = "limits of runtime/behaviour_test.shop: the limiter is nil"
		}
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%s: panic %v; want %s", what, got, want)
				}
			}()
			f()
		}()
	}
}
