package behaviour_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// limitOf returns the limit in a refusal by the rule. The rule must be exhausted.
func limitOf(t *testing.T, l *ratelimit.Limiter, q ratelimit.Request) int64 {
	t.Helper()
	d, err := l.Allow(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if d.Allowed {
		return -1
	}
	return d.Violations[0].Limit
}

func fill(t *testing.T, s *subject) ratelimit.Request {
	t.Helper()
	q := ratelimit.Request{Rule: window("r", 9, s.window), Key: "k"}
	s.admit(t, ratelimit.Request{Rule: q.Rule, Key: "k", Cost: 9})
	return q
}

// All limiters on a store follow its overrides: those that are called all the time, new ones, and those that are called again after a pause.
func TestRatesAreFollowed(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := fill(t, s)
		busy, idle := s.another(), s.another()
		for _, l := range []*ratelimit.Limiter{busy, idle} {
			if limit := limitOf(t, l, q); limit != 9 {
				t.Fatalf("limit %d before any override", limit)
			}
		}
		setRate(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(5))})
		if limit := limitOf(t, s.limiter, q); limit != 5 {
			t.Errorf("limit %d where it was set to 5", limit)
		}
		starting := s.another()
		redistest.Eventually(t, "a program that starts knows an override soon", func() bool { return limitOf(t, starting, q) == 5 })
		redistest.Eventually(t, "a limiter that is called all the time follows", func() bool { return limitOf(t, busy, q) == 5 })
		redistest.Eventually(t, "a limiter that was idle follows", func() bool { return limitOf(t, idle, q) == 5 })
		if err := busy.Overrides().Clear(context.Background(), "r", ""); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "a limiter follows the end of an override", func() bool { return limitOf(t, idle, q) == 9 })
	})
}

func TestTrySetRate(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := fill(t, s)
		ctx := context.Background()
		for i, want := range []bool{true, false} {
			if set, err := s.limiter.Overrides().SetNew(ctx, "r", ratelimit.Override{Limit: new(int64(4 - i))}); set != want || err != nil {
				t.Errorf("attempt %d: got %v, error %v", i+1, set, err)
			}
			if limit := limitOf(t, s.limiter, q); limit != 4 {
				t.Errorf("limit %d, want the first one, 4", limit)
			}
		}
		setRate(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(3))})
		if limit := limitOf(t, s.limiter, q); limit != 3 {
			t.Errorf("limit %d, want the one that replaced it, 3", limit)
		}
		if err := s.limiter.Overrides().Clear(ctx, "r", ""); err != nil {
			t.Fatal(err)
		}
		if set, err := s.limiter.Overrides().SetNew(ctx, "r", ratelimit.Override{Limit: new(int64(2))}); !set || err != nil {
			t.Errorf("after the end of the first: got %v, error %v", set, err)
		}
		if err := s.limiter.Overrides().Set(ctx, "r", ratelimit.Override{}); err == nil {
			t.Error("an override of nothing was set")
		}
	})
}

// SetNew replaces an override that has ended. Of many programs, one sets the new override.
func TestTrySetRateOverOneThatHasEnded(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		setRate(t, s.limiter, "other", ratelimit.Override{Limit: new(int64(1))})
		setRate(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(7)), Until: time.Unix(1, 0)})
		var set, limit atomic.Int64
		var all sync.WaitGroup
		for n := range int64(8) {
			program := s.another()
			all.Go(func() {
				did, err := program.Overrides().SetNew(context.Background(), "r", ratelimit.Override{Limit: new(n)})
				if err != nil {
					t.Error(err)
				}
				if did {
					set.Add(1)
					limit.Store(n)
				}
			})
		}
		all.Wait()
		found, err := s.limiter.Overrides().List(context.Background())
		if err != nil || set.Load() != 1 || len(found) != 2 || *found[1].Limit != limit.Load() {
			t.Errorf("%d programs set an override; there are %v, error %v; want the limit %d", set.Load(), found, err, limit.Load())
		}
	})
}

// A local override takes precedence over the store's. Limiters with another prefix see neither.
func TestOverrideHidesTheRate(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		q := fill(t, s)
		setRate(t, s.limiter, "r", ratelimit.Override{Mode: new(ratelimit.ModeShadow)})
		override(t, s.limiter, "r", ratelimit.Override{Limit: new(int64(7))})
		if limit := limitOf(t, s.limiter, q); limit != 7 {
			t.Errorf("limit %d, want the process's own", limit)
		}
		s.limiter.Overrides().ClearLocal("r", "")
		s.admit(t, q)
		other := s.with(ratelimit.New(s.store, ratelimit.WithPrefix("other")))
		fill(t, other)
		other.refuse(t, q)
	})
}

func TestMalformedRatesAreIgnored(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	s := onServer(t, server)
	q := fill(t, s)
	ctx := context.Background()
	setRate(t, s.limiter, "t", ratelimit.Override{Limit: new(int64(1))})
	for rule, text := range map[string]string{"r": `{"limits":1}`, "s": "5", "u": `{"per":"1mo"}`, "v": "{}"} {
		version := client.Incr(ctx, "ratelimit.fleet:{ratelimit}:version").Val()
		client.ZAdd(ctx, "ratelimit.fleet:{ratelimit}:versions", redis.Z{Score: float64(version), Member: "override:" + rule})
		if err := client.HSet(ctx, "ratelimit.fleet:{ratelimit}:settings", "override:"+rule, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := s.another()
	redistest.Eventually(t, "the overrides are known", func() bool {
		if limit := limitOf(t, l, q); limit != 9 {
			t.Fatalf("limit %d, want the rule's", limit)
		}
		return l.Overrides().Err() != nil
	})
	q.Rule.Name = "t"
	if _, err := l.Allow(ctx, ratelimit.Request{Rule: q.Rule, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if limit := limitOf(t, l, q); limit != 1 {
		t.Errorf("limit %d, want the override that is well-formed", limit)
	}
	for _, name := range []string{"u", "v"} {
		unfit := q
		unfit.Rule.Name = name
		if _, err := l.Allow(ctx, unfit); err != nil {
			t.Fatal(err)
		}
	}
	found, unreadable := l.Overrides().List(ctx)
	if len(found) != 1 || found[0].Rule != "t" {
		t.Errorf("listed are %v", found)
	}
	for _, err := range []error{l.Overrides().Err(), unreadable} {
		for _, want := range []string{`"limits"`, `override:s"`, `"1mo"`, "found no change"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one about %s", err, want)
			}
		}
	}
}

// While the store cannot be reached, the overrides that were read before stay in force.
func TestRatesOutliveAnOutage(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		l := ratelimit.New(s.store, ratelimit.WithFailurePolicy(ratelimit.FailLocal))
		q := ratelimit.Request{Rule: window("r", 9, s.window), Key: "k"}
		setRate(t, l, "r", ratelimit.Override{Limit: new(int64(1))})
		server.Stop()
		if _, err := l.Allow(context.Background(), q); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the failure to follow is known", func() bool {
			if limit := limitOf(t, l, q); limit != 1 {
				t.Fatalf("limit %d while the store is down, want what it was before", limit)
			}
			_, ok := errors.AsType[*ratelimit.StoreError](l.Overrides().Err())
			return ok
		})
		server.Restart()
		if _, err := l.Allow(context.Background(), q); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the limiter follows again", func() bool {
			if limit := limitOf(t, l, q); limit > 1 {
				t.Fatalf("limit %d after the store came back without data, want what it was before", limit)
			}
			return !errors.As(l.Overrides().Err(), new(*ratelimit.StoreError))
		})
	})
}
