package plain

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// However busy a count is, every refund ends, and its permits are free again.
func TestReturnsUnderContentionEnd(t *testing.T) {
	s := start(t)
	const returns = 200
	rule := hourly
	rule.Limit = 1_000_000
	var decisions [returns]ratelimit.Decision
	for i := range decisions {
		decisions[i] = s.admit(t, ask(rule, "k"))
	}
	var busy, all sync.WaitGroup
	var charged atomic.Int64
	ended := make(chan struct{})
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					s.admit(t, ask(rule, "k"))
					charged.Add(1)
				}
			}
		})
	}
	for _, d := range decisions {
		all.Go(func() {
			if err := d.Refund(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(ended)
	busy.Wait()
	if left := s.left(t, rule, "k"); left != rule.Limit-charged.Load() {
		t.Errorf("%d permits left, want %d", left, rule.Limit-charged.Load())
	}
}

// A refund that is always too slow returns when its context ends, and goes on in the background.
func TestReturnGoesOnWithoutItsContext(t *testing.T) {
	s := start(t)
	d := s.admit(t, ask(hourly, "k"))
	other := on(t, s.server, s.server.Addr)
	left := transactions(math.MaxInt64)
	s.store.servers.Client.AddHook(restless{other.client, left})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := d.Refund(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	left.Store(0)
	other.waitLeft(t, hourly, "k", 3)
	if err := d.Refund(context.Background()); err != nil || other.left(t, hourly, "k") != 3 {
		t.Errorf("error %v, %d of 3 permits left", err, other.left(t, hourly, "k"))
	}
}

// late sends each transaction two milliseconds after the reads that it depends on.
type late struct{ restless }

func (late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" {
			time.Sleep(2 * time.Millisecond)
		}
		return next(ctx, cmds)
	}
}

// A settlement may open a window. The time of its charge is in that window. So a refund finds the permits there.
func TestRefundOfASettlementThatOpensAWindow(t *testing.T) {
	s := start(t)
	s.store.servers.Client.AddHook(late{})
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		d := s.admit(t, ask(rule, "k"))
		s.server.Do("FLUSHALL")
		if err := d.Settle(t.Context(), 3); err != nil || s.left(t, rule, "k") != 1 {
			t.Errorf("%s: error %v, %d of 3 permits left after the settlement; want 1", rule.Name, err, s.left(t, rule, "k"))
		}
		if err := d.Refund(t.Context()); err != nil || s.left(t, rule, "k") != 3 {
			t.Errorf("%s: error %v, %d of 3 permits left after the refund", rule.Name, err, s.left(t, rule, "k"))
		}
	}
}

// A refund is tried more often than a decision, because permits that are not given back stay taken.
func TestReturnGoesOn(t *testing.T) {
	s := start(t)
	d := s.admit(t, ask(hourly, "k"))
	other := on(t, s.server, s.server.Addr)
	s.store.servers.Client.AddHook(restless{other.client, transactions(maxTries + 10)})
	if err := d.Refund(context.Background()); err != nil || other.left(t, hourly, "k") != 3 {
		t.Errorf("error %v, %d of 3 permits left", err, other.left(t, hourly, "k"))
	}
}

// A rollback closes the window that its call opened if nothing else is counted there. A refund leaves it open.
func TestRollback(t *testing.T) {
	s := start(t)
	rule := &engine.Rule{Name: "r", Tag: "1h", Kind: engine.FixedWindow, Per: time.Hour.Microseconds()}
	for _, rollback := range []bool{false, true} {
		for _, second := range []bool{false, true} { // which of two calls is given back
			s.server.Do("FLUSHALL")
			var calls [2]*engine.Call
			for i := range calls {
				calls[i] = &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: rule, Subject: "k", Cost: 1, Limit: 3}}}}
			}
			back := calls[0]
			if _, err := s.store.Decide(t.Context(), calls[0]); err != nil {
				t.Fatal(err)
			}
			if second {
				back = calls[1]
				if _, err := s.store.Decide(t.Context(), back); err != nil {
					t.Fatal(err)
				}
			}
			back.Rollback, back.Claims[0].Delta = rollback, -1
			if err := s.store.Adjust(t.Context(), back); err != nil || back.Claims[0].Delta != 0 {
				t.Fatal(err, back.Claims[0].Delta)
			}
			if open := s.server.Do("KEYS *") != ""; open == (rollback && !second) {
				t.Errorf("rollback %t, of the second call %t: a window is open: %t", rollback, second, open)
			}
		}
	}
}

// UpTo calls and their reports agree with a simple count.
func TestUpTo(t *testing.T) {
	s := start(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.server.Do("FLUSHALL")
		rules := []ratelimit.Rule{hourly, yearly, hourly}[:rapid.IntRange(1, 3).Draw(rt, "rules")]
		if len(rules) == 3 {
			rules[2].Name, rules[2].Mode = "shadow", ratelimit.ModeShadow // counts the calls that it would admit
		}
		room := make([]int64, len(rules))
		for i := range rules {
			rules[i].Limit = rapid.Int64Range(1, 9).Draw(rt, "limit")
			room[i] = rules[i].Limit
		}
		for range 4 {
			want := rapid.Int64Range(1, 6).Draw(rt, "cost")
			var call []ratelimit.Request
			for _, rule := range rules {
				call = append(call, ratelimit.Request{Rule: rule, Key: "k", Cost: want, UpTo: true})
			}
			for _, r := range room[:min(len(room), 2)] {
				want = min(want, r)
			}
			ctx, report := ratelimit.WithReport(t.Context())
			d, err := s.Allow(ctx, call...)
			if err != nil || d.Allowed != (want > 0) || d.Taken != want {
				rt.Fatalf("got %+v, error %v, want %d", d, err, want)
			}
			for i, q := range report.Quotas() {
				if room[i] >= want {
					room[i] -= want
				}
				if q.Remaining != room[i] || (q.Reset > 0) != (room[i] < q.Limit) {
					rt.Fatalf("quota %+v, want %d left", q, room[i])
				}
			}
		}
	})
}
