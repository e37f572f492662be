package redisstore

import (
	"sync"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// eachAtOnce calls do for each call in a goroutine of its own.
func eachAtOnce(t *testing.T, calls []*engine.Call, do func(*engine.Call) error) {
	var wg sync.WaitGroup
	for _, call := range calls {
		wg.Go(func() {
			if err := do(call); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// After many waiting calls have given up at once, the state is that before they came, and no free place is left. Each run had only as many of
// them as its weight allows.
func TestManyGiveUpAtOnce(t *testing.T) {
	s, server := open(t)
	for _, rule := range []*engine.Rule{
		combinable[0], combinable[1], combinable[2],
		{Name: "calendar", Tag: "cron:month", Kind: engine.Calendar, Schedule: schedule(t, "0 0 0 1 * *")},
		{Name: "amounts", Tag: "amounts:1h", Kind: engine.Amounts, Per: 3600 * second},
	} {
		one := of(rule, 100, "a")
		full := one.Clone()
		full.Claims[0].Cost = 100
		if v, err := s.Decide(t.Context(), full); err != nil || !v.Admitted {
			t.Fatal(rule.Name, v, err)
		}
		before := peeked(t, s, one)
		calls := make([]*engine.Call, 2000)
		for i := range calls {
			calls[i] = one.Clone()
			calls[i].Claims[0].Wait = 3600 * 24 * 3600 * second
		}
		server.Do("CONFIG RESETSTAT")
		eachAtOnce(t, calls, func(call *engine.Call) error {
			v, err := s.Decide(t.Context(), call)
			if err == nil && (!v.Admitted || v.At <= v.Now) {
				t.Errorf("%s: a call has no place: %+v", rule.Name, v)
			}
			return err
		})
		eachAtOnce(t, calls, func(call *engine.Call) error {
			call.Undo()
			return s.Adjust(t.Context(), call)
		})
		if n, least := scripts(server), int64(2*len(calls)*otherWeight/maxWeight); n < least {
			t.Errorf("%s: %d scripts, want at least %d", rule.Name, n, least)
		}
		if after := peeked(t, s, one); after.Room != before.Room || after.Earliest != before.Earliest {
			t.Errorf("%s: got %+v, want %+v", rule.Name, after, before)
		}
		if left := server.Do("KEYS *free-places*"); left != "" {
			t.Errorf("free places are left: %q", left)
		}
	}
}

// peeked returns what a peek says of the claim of a call.
func peeked(t *testing.T, s *store, call engine.Call) engine.Claim {
	peek := call.Clone()
	peek.Peek = true
	if _, err := s.Decide(t.Context(), peek); err != nil {
		t.Fatal(err)
	}
	return peek.Claims[0]
}
