package behaviour_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// While the store cannot be reached, the strictest policy of a call's rules decides.
func TestFailurePolicies(t *testing.T) {
	const none, deny, allow, local = ratelimit.DefaultPolicy, ratelimit.FailClosed, ratelimit.FailOpen, ratelimit.FailLocal
	tests := []struct {
		limiter ratelimit.FailurePolicy
		rules   []ratelimit.FailurePolicy
		passes  int // of 5 calls, limit 3; -1 for an error
	}{
		{none, []ratelimit.FailurePolicy{none}, -1},
		{deny, []ratelimit.FailurePolicy{none}, -1},
		{allow, []ratelimit.FailurePolicy{none}, 5},
		{local, []ratelimit.FailurePolicy{none}, 3},
		{deny, []ratelimit.FailurePolicy{allow}, 5},
		{allow, []ratelimit.FailurePolicy{deny}, -1},
		{deny, []ratelimit.FailurePolicy{allow, local}, 3},
		{allow, []ratelimit.FailurePolicy{none, local}, 3},
		{allow, []ratelimit.FailurePolicy{none, deny, local}, -1},
		{allow, []ratelimit.FailurePolicy{none, none}, 5},
		{ratelimit.FailLocalShare(3), []ratelimit.FailurePolicy{local}, 1}, // the rule's word has the limiter's share
		{ratelimit.FailLocalShare(3), []ratelimit.FailurePolicy{ratelimit.FailLocalShare(1)}, 3},
		{9, []ratelimit.FailurePolicy{none}, -1}, // there is no such policy
	}
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		server.Stop()
		for i, test := range tests {
			l := ratelimit.New(s.store, ratelimit.WithFailurePolicy(test.limiter))
			var rules []ratelimit.Rule
			var subjects []string
			for j, policy := range test.rules {
				rules = append(rules, window(string(rune('a'+j)), 3, s.window))
				rules[j].OnError = policy
				subjects = append(subjects, "k")
			}
			passes, prepared := 0, wrap.NewRules("m", rules...)
			for range 5 {
				switch err := wrap.Take(context.Background(), prepared.On(l), prepared, subjects...); {
				case err == nil:
					passes++
				case !errors.Is(err, ratelimit.ErrTooManyRequests):
					if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
						t.Fatalf("test %d: error %v (%T)", i, err, err)
					}
					passes = -1
				}
			}
			if passes != test.passes {
				t.Errorf("test %d: %d calls passed, want %d", i, passes, test.passes)
			}
		}
	})
}

// A charge that was made in this process during an outage is given back in this process.
func TestReturnOfALocalDecision(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		s = s.with(ratelimit.New(s.store, ratelimit.WithFailurePolicy(ratelimit.FailLocal)))
		server.Stop()
		q := ratelimit.Request{Rule: window("r", 1, s.window), Key: "k"}
		for range 3 {
			d := s.admit(t, q)
			s.refuse(t, q)
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// During an outage only few of the calls try to connect, and afterwards calls pass again.
func TestFault_EveryCallWaitsForTheConnectTimeout(t *testing.T) {
	t.Parallel()
	const calls = 200
	server := redistest.Start(t)
	var dials atomic.Int64
	var down atomic.Bool
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, PoolSize: 1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			if down.Load() {
				time.Sleep(5 * time.Millisecond)
				return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
			}
			return net.Dial(network, addr)
		}})
	t.Cleanup(func() { _ = client.Close() })
	s := &subject{limiter: ratelimit.New(scripted(client))}
	down.Store(true)
	for range calls {
		_, err := s.limiter.Allow(context.Background(), ratelimit.Request{Rule: hourly, Key: "k"})
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Fatalf("got error %v", err)
		}
	}
	if n := dials.Load(); n > calls/4 {
		t.Errorf("%d attempts to connect for %d calls", n, calls)
	}
	down.Store(false)
	for range 1000 {
		if _, err := s.limiter.Allow(context.Background(), ratelimit.Request{Rule: hourly, Key: "k"}); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the calls still fail after the outage")
}

// The counts of FailLocal are separate from those of rules of instance scope.
func TestLocalCountsOfBothScopesAreApart(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		s = s.with(ratelimit.New(s.store, ratelimit.WithFailurePolicy(ratelimit.FailLocal)))
		server.Stop()
		fleet := ratelimit.Request{Rule: window("r", 1, s.window), Key: "k"}
		here := fleet
		here.Rule.Scope = ratelimit.ScopeInstance
		s.admit(t, here)
		s.admit(t, fleet)
		s.refuse(t, here)
		s.refuse(t, fleet)
	})
}

// While the store fails, the n processes of a fleet together admit at most max(limit, n) permits in a window, however often the store comes back
// in between.
func TestSharesOfAFleet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]ratelimit.Rule{
			{Per: time.Hour}, {Per: time.Hour, Algorithm: ratelimit.FixedWindow}, {Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
			{Per: time.Hour, Algorithm: ratelimit.TokenBucket}, {Per: time.Hour, Algorithm: ratelimit.LeakyBucket}, {Cron: "@hourly"},
		}).Draw(t, "rule")
		rule.Name, rule.Limit = "r", rapid.Int64Range(1, 20).Draw(t, "limit")
		n := rapid.Int64Range(1, 30).Draw(t, "processes")
		ofLimiter := ratelimit.FailLocalShare(int(n))
		ofRule := rapid.SampledFrom([]ratelimit.FailurePolicy{ratelimit.DefaultPolicy, ratelimit.FailLocal, ofLimiter}).Draw(t, "the rule's policy")
		if ofRule == ofLimiter {
			ofLimiter = ratelimit.FailClosed
		}
		rule.OnError = ofRule
		store := limittest.NewOutage(limittest.NewClock())
		admitted := int64(0)
		for range n {
			l := ratelimit.New(store, ratelimit.WithFailurePolicy(ofLimiter), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
			for call := range 10 {
				q := ratelimit.Request{Rule: rule, Key: "k", UpTo: rapid.Bool().Draw(t, "up to")}
				if q.Cost = 1; rule.Algorithm != ratelimit.LeakyBucket {
					q.Cost = rapid.Int64Range(1, rule.Limit).Draw(t, "cost")
				}
				store.Begin(nil)
				d, err := l.Allow(context.Background(), q)
				_, failed := errors.AsType[*ratelimit.StoreError](err)
				switch {
				case err != nil && (!failed || q.Cost == 1 || q.UpTo) || err == nil && d.Source != ratelimit.SourcePolicy:
					t.Fatalf("got %+v, error %v", d, err)
				case call == 0 && q.Cost == 1 && !d.Allowed:
					t.Fatal("a process admits nothing")
				case d.Allowed && q.UpTo:
					admitted += d.Taken
				case d.Allowed:
					admitted += q.Cost
				}
				store.End()
				if _, err := l.Peek(context.Background(), q); err != nil {
					t.Fatal(err)
				}
			}
		}
		if admitted > max(rule.Limit, n) {
			t.Errorf("%d processes admitted %d permits under a limit of %d", n, admitted, rule.Limit)
		}
	})
}

// However often the store fails and comes back, each process gives a subject at most one more limit in a window. With FailLocalShare all
// processes together give at most one more.
func TestFlappingStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := ratelimit.Rule{Name: "r", Limit: rapid.Int64Range(1, 10).Draw(t, "limit"), Per: time.Minute}
		n, policy := rapid.IntRange(1, 5).Draw(t, "processes"), ratelimit.FailLocal
		most := rule.Limit * int64(1+n)
		if rapid.Bool().Draw(t, "shared") {
			policy, most = ratelimit.FailLocalShare(n), rule.Limit+max(rule.Limit, int64(n))
		}
		clock := limittest.NewClock()
		store := limittest.NewOutage(clock)
		fleet := make([]*ratelimit.Limiter, n)
		for i := range fleet {
			fleet[i] = ratelimit.New(store, ratelimit.WithFailurePolicy(policy), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		}
		var admitted []time.Time
		for range 300 {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				store.Begin(nil)
			case 1:
				store.End()
			case 2:
				clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "later"))
			default:
				d, err := rapid.SampledFrom(fleet).Draw(t, "process").Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "k"})
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted = append(admitted, clock.Now())
				}
			}
		}
		for i, first := range admitted {
			held := int64(0)
			for _, at := range admitted[i:] {
				if at.Sub(first) < rule.Per {
					held++
				}
			}
			if held > most {
				t.Fatalf("a window holds %d permits; %d processes may admit %d under a limit of %d", held, n, most, rule.Limit)
			}
		}
	})
}
