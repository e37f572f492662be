package behaviour_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// If the wrapped call fails, only the rules with RefundError give their permits back.
func TestRefundOfOneOfTwoRules(t *testing.T) {
	onEveryAlgorithm(t, func(t *testing.T, s *subject, rule ratelimit.Rule) {
		refunds := rule
		refunds.Name, refunds.Refund = rule.Name+"-refunds", ratelimit.RefundError
		one := wrap.Charge{Key: "k", Cost: 1}
		rules := wrap.NewRules("m", refunds, rule)
		taken, err := wrap.Begin(context.Background(), rules.On(s.limiter), rules, one, one)
		if err != nil {
			t.Fatal(err)
		}
		taken.RefundUnless(context.Background(), new(bool))
		for r, want := range map[ratelimit.Rule]int64{refunds: 3, rule: 2} {
			if left := s.left(t, ratelimit.Request{Rule: r, Key: "k"}); left != want {
				t.Errorf("%s: %d of 3 permits left, want %d", r.Name, left, want)
			}
		}
	})
}

// A refund that reached no server can be tried again. One whose reply was lost is not repeated, and neither is one that succeeded.
func TestReturnAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	load(t, connect(t, server.Addr))
	between := redistest.StartProxy(t, server.Addr)
	s := onServer(t, server)
	q := ratelimit.Request{Rule: window("r", 5, ratelimit.FixedWindow), Key: "k"}
	ctx := context.Background()

	through := &subject{limiter: ratelimit.New(bare{scripted(connectBy(t, between.Addr, 1))})}
	lost := through.admit(t, q)
	between.WaitInfo() // which the store asks in the background: that reply is not to be the one that is lost
	between.Replies.Store(0)
	if err := lost.Refund(ctx); err == nil {
		t.Error("no reply was lost")
	}
	if err := lost.Refund(ctx); err != nil || s.left(t, q) != 5 {
		t.Errorf("error %v, %d of 5 permits left; want 5", err, s.left(t, q))
	}

	d := s.admit(t, q)
	server.Do("CONFIG SET maxmemory 1")
	server.Do("CONFIG SET maxmemory-policy noeviction")
	if err := d.Refund(ctx); err == nil {
		t.Error("a server out of memory took a return")
	}
	server.Do("CONFIG SET maxmemory 0")
	for range 2 {
		if err := d.Refund(ctx); err != nil {
			t.Fatal(err)
		}
		if left := s.left(t, q); left != 5 {
			t.Errorf("%d of 5 permits left after a return", left)
		}
	}
}

// The settlements of several calls together can make a debt of at most 24 hours. Observers see which of them was not charged in full, and how
// much was charged.
func TestSettlementsThatAddUp(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var told []error
		s.limiter = ratelimit.New(s.store, ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
			if e.Kind == ratelimit.EventSettled {
				told = append(told, e.Err)
			}
		}))
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "b", Algorithm: ratelimit.TokenBucket, Limit: 1, Per: 24 * time.Hour, Burst: 5}, Key: "k"}
		calls := []ratelimit.Decision{s.admit(t, q), s.admit(t, q), s.admit(t, q)}
		for i, cost := range []int64{3, 9, 2} { // the burst and a day's permit are 6
			if err := calls[i].Settle(t.Context(), cost); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []string{"<nil>", "found a cost of 9; charged 2,", "found a cost of 2; charged 1,"} {
			if text := fmt.Sprint(told[i]); !strings.Contains(text, want) {
				t.Errorf("settlement %d is told as %s, want %s", i, text, want)
			}
		}
	})
}
