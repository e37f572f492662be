package plain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Wherever a process dies in the middle of a decision, no counter is left without an expiry, and no call is charged in part.
func TestFault_KilledBetweenTwoCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := redistest.StartProxy(t, server.Addr)
	s := on(t, server, p.Addr).withoutOverrides()
	direct := on(t, server, server.Addr)
	for _, call := range [][]ratelimit.Request{{ask(hourly, "k")}, {ask(yearly, "k")}, {ask(hourly, "k"), ask(yearly, "k")}} {
		s.admit(t, call...) // makes a connection
		for bytes := int64(0); ; bytes += 4 {
			server.Do("FLUSHALL")
			p.Requests.Store(bytes)
			_, err := s.Allow(context.Background(), call...)
			cut := p.Requests.Swap(-1) == -1
			direct.requireBounded(t)
			left := direct.left(t, call[0].Rule, "k")
			if left < 2 || err == nil && left != 2 {
				t.Fatalf("cut after %d bytes: %d of 3 permits left, error %v", bytes, left, err)
			}
			for _, q := range call[1:] {
				if other := direct.left(t, q.Rule, "k"); other != left {
					t.Fatalf("cut after %d bytes: %d and %d permits left of rules that are charged together", bytes, left, other)
				}
			}
			if !cut && err == nil {
				break // the whole decision got through
			}
		}
	}
}

// A decision whose reply is lost is not sent again.
func TestFault_RepeatedByTheClient(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := redistest.StartProxy(t, server.Addr)
	s := on(t, server, p.Addr).withoutOverrides()
	direct := on(t, server, server.Addr)
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		s.admit(t, ask(rule, "other"))
		p.Replies.Store(0)
		_, err := s.Allow(context.Background(), ask(rule, "k"))
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Errorf("got error %v, want a *StoreError", err)
		}
		if left := direct.left(t, rule, "k"); left != 2 {
			t.Errorf("%s: %d of 3 permits left after one call", rule.Name, left)
		}
	}
}

// Wherever the replies to a refund or a settlement break off, it takes effect once when it is tried again, and takes nothing from other calls.
func TestFault_LostReplyToAnAdjustment(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := redistest.StartProxy(t, server.Addr)
	s := on(t, server, p.Addr).withoutOverrides()
	direct := on(t, server, server.Addr)
	for _, rule := range []ratelimit.Rule{hourly, yearly} {
		rule.Limit = 10
		for left, adjust := range map[int64]func(ratelimit.Decision) error{
			8: func(d ratelimit.Decision) error { return d.Refund(context.Background()) },
			3: func(d ratelimit.Decision) error { return d.Settle(context.Background(), 5) },
		} {
			for bytes, cut := int64(0), true; cut; bytes += 8 {
				server.Do("FLUSHALL")
				direct.admit(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
				d := s.allow(t, ratelimit.Request{Rule: rule, Key: "k", Cost: 2})
				p.Replies.Store(bytes)
				_ = adjust(d)
				cut = p.Replies.Swap(-1) == -1
				if err := adjust(d); err != nil {
					t.Fatal(err)
				}
				if got := direct.left(t, rule, "k"); got != left {
					t.Fatalf("%s: replies cut after %d bytes: %d of 10 permits left, want %d", rule.Name, bytes, got, left)
				}
			}
		}
	}
}

// If a call ends before its answer comes, its charge is given back.
func TestCancelledCallIsGivenBack(t *testing.T) {
	s := start(t)
	s.admit(t, ask(hourly, "other"))
	for _, call := range [][]ratelimit.Request{{ask(hourly, "k")}, {ask(hourly, "k"), ask(yearly, "k")}} {
		s.server.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, err := s.Allow(ctx, call...)
		cancel()
		s.server.Resume()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want that of the context", err)
		}
		s.waitLeft(t, hourly, "k", 3) // a call that nobody waited for does not stay charged
	}
}

// If this process's clock is wrong, even by a whole calendar window, the server's clock decides.
func TestFault_ClientClockChoosesTheWindow(t *testing.T) {
	s := start(t)
	halfAnHourAway := (time.Now().UTC().Minute() + 30) % 60
	hour := ratelimit.Rule{Name: "hour", Limit: 3, Cron: fmt.Sprint(halfAnHourAway, " * * * *")}
	for _, off := range []time.Duration{400 * 24 * time.Hour, -400 * 24 * time.Hour, time.Hour, -time.Hour} {
		for _, call := range [][]ratelimit.Request{{ask(yearly, "k")}, {ask(hour, "k")}, {ask(yearly, "k"), ask(hour, "k")}} {
			s.server.Do("FLUSHALL")
			for range 3 {
				s.store.offset.Store(off.Microseconds())
				s.admit(t, call...)
			}
			s.store.offset.Store(off.Microseconds())
			s.refuse(t, call...)
			s.requireBounded(t)
			for _, q := range call {
				s.requireOnly(t, q, 3)
			}
			s.store.offset.Store(off.Microseconds())
			if n, err := s.Reset(t.Context(), call...); n != len(call) || err != nil {
				t.Errorf("found %d counts, error %v", n, err)
			}
			d := s.admit(t, call...)
			s.store.offset.Store(off.Microseconds())
			if err := d.Settle(t.Context(), []int64{2, 2}[:len(call)]...); err != nil {
				t.Error(err)
			}
			for _, q := range call {
				s.requireOnly(t, q, 2)
			}
		}
	}
}

// The start of an anchored window is by the server's clock, too. So a refund from the window before it has no effect on it.
func TestFault_ClientClockChoosesTheStart(t *testing.T) {
	s := start(t)
	day := &engine.Rule{Name: "day", Tag: "every:1d", Kind: engine.Anchored, Every: engine.Every{Days: 1, Zone: time.UTC}}
	year := &engine.Rule{Name: "year", Tag: "every:1y", Kind: engine.Anchored, Every: engine.Every{Months: 12, Zone: time.UTC}}
	anchor, _ := engine.AnchorAt(time.Now().Add(-12 * time.Hour))
	change := func(call *engine.Call, delta int64) error {
		for i := range call.Claims {
			call.Claims[i].Delta = delta
		}
		return s.store.Adjust(t.Context(), call)
	}
	opens := map[string]func(*engine.Call) error{
		"decision":   func(call *engine.Call) error { _, err := s.store.Decide(t.Context(), call); return err },
		"settlement": func(call *engine.Call) error { return change(call, 6) },
	}
	for name, open := range opens {
		for _, rules := range [][]*engine.Rule{{day}, {day, year}} {
			for _, off := range []time.Duration{0, -2 * time.Minute, -7 * time.Hour, -400 * 24 * time.Hour, 7 * time.Hour, 400 * 24 * time.Hour} {
				s.server.Do("FLUSHALL")
				call := &engine.Call{Prefix: "p"}
				for _, rule := range rules {
					call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: rule, Subject: "k", Cost: 6, Limit: 6, Anchor: anchor}})
				}
				s.store.offset.Store(off.Microseconds())
				if err := open(call); err != nil {
					t.Fatal(err)
				}
				before, peek := call.Clone(), call.Clone()
				for i := range before.Claims {
					before.Claims[i].At = time.Now().Add(-90 * time.Second).UnixMicro() // in a window that has ended
				}
				peek.Peek = true
				for i, refunded := range []*engine.Call{before, call} {
					if err := change(refunded, -6); err != nil {
						t.Fatal(err)
					}
					if v, err := s.store.Decide(t.Context(), peek); err != nil || v.Admitted != (refunded == call) {
						t.Errorf("%s, %d rules, off by %s, refund %d: %d of 6 permits left, error %v", name, len(rules), off, i, peek.Claims[0].Room, err)
					}
				}
			}
		}
	}
}

// requireOnly fails the test if any window but the present one has a count.
func (s *site) requireOnly(t *testing.T, q ratelimit.Request, want int64) {
	t.Helper()
	var used []int64
	keys := s.client.Keys(context.Background(), "*:"+q.Rule.Name+":*").Val()
	for _, key := range keys {
		if n := s.client.BitField(context.Background(), key, "get", "u63", "0").Val()[0]; n > 0 {
			used = append(used, n)
		}
	}
	if len(used) != 1 || used[0] != want {
		t.Errorf("%s: counts %v in %q, want %d in one", q.Rule.Name, used, keys, want)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	splitSubjects(t, ratelimit.New(New(client, WithTimeout(patience))))
}

// A client of one server of a cluster learns from the server's error that subjects are on different servers. No failure policy then lets calls pass.
func TestClusterThatTheClientHides(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.StartCluster(t, 1)[0].Addr})
	t.Cleanup(func() { _ = client.Close() })
	observe := func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventStoreLost {
			t.Errorf("the store works: %v", e.Err)
		}
	}
	l := ratelimit.New(New(client, WithTimeout(patience)), ratelimit.WithFailurePolicy(ratelimit.FailOpen), ratelimit.WithObserver(observe))
	for range 2 {
		requireApart(t, l)
	}
	splitSubjects(t, l)
}

func TestRing(t *testing.T) {
	t.Parallel()
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{
		"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr,
	}})
	t.Cleanup(func() { _ = client.Close() })
	splitSubjects(t, ratelimit.New(New(client, WithTimeout(patience))))
}

// splitSubjects tests a store whose subjects live on several servers.
func splitSubjects(t *testing.T, l *ratelimit.Limiter) {
	for _, key := range []string{"a", "b", "c", "d"} {
		for _, call := range [][]ratelimit.Request{{ask(hourly, key)}, {ask(hourly, key), ask(yearly, key)}, {ask(hourly, key)}, {ask(hourly, key)}} {
			d, err := l.Allow(context.Background(), call...)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				continue // the fourth call is refused
			}
			if err := d.Refund(context.Background()); err != nil {
				t.Fatal(err)
			}
			if d, err = l.Allow(context.Background(), call...); err != nil || !d.Allowed {
				t.Errorf("%+v, error %v", d, err)
			}
		}
	}
	requireApart(t, l)
}

// requireApart fails the test unless a call with two subjects gives an error about its first rule.
func requireApart(t *testing.T, l *ratelimit.Limiter) {
	t.Helper()
	_, err := l.Allow(context.Background(), ask(hourly, "+491511"), ask(yearly, "+491522"))
	requireRuleError(t, err, "key")
	if e, ok := errors.AsType[*ratelimit.RuleError](err); !ok || e.Rule != hourly.Name || strings.Contains(err.Error(), "+4915") {
		t.Errorf("got %v, want an error of rule %s without keys", err, hourly.Name)
	}
}

// counting counts the round trips of decisions.
type counting struct{ trips atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds[0])
		return next(ctx, cmds)
	}
}

// count leaves out the commands that open a connection or read the overrides.
func (c *counting) count(first redis.Cmder) {
	switch first.Name() {
	case "hello", "client", "mget":
	default:
		c.trips.Add(1)
	}
}

func TestRoundTrips(t *testing.T) {
	s := start(t)
	s.admit(t, ask(hourly, "other"))
	c := new(counting)
	s.store.servers.Client.AddHook(c)
	tests := map[string]struct {
		do   func()
		want int64
	}{
		"one rule":               {func() { s.admit(t, ask(hourly, "k")) }, 1},
		"a calendar":             {func() { s.admit(t, ask(yearly, "k")) }, 1},
		"peek":                   {func() { s.left(t, hourly, "new") }, 1},
		"one rule, refused":      {func() { s.refuse(t, ratelimit.Request{Rule: hourly, Key: "other", Cost: 3}) }, 1},
		"several rules":          {func() { s.admit(t, ask(hourly, "m"), ask(yearly, "m")) }, 3},
		"several rules, refused": {func() { s.refuse(t, ratelimit.Request{Rule: hourly, Key: "other", Cost: 3}, ask(yearly, "m")) }, 3},
	}
	for name, test := range tests {
		c.trips.Store(0)
		test.do()
		if got := c.trips.Load(); got != test.want {
			t.Errorf("%s: %d round trips, want %d", name, got, test.want)
		}
	}
}

// faulty is a hook that panics in transactions while on is set.
type faulty struct{ on *atomic.Bool }

func (faulty) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (faulty) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (f faulty) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.on.Load() && cmds[0].Name() == "multi" {
			panic("a bug of the program")
		}
		return next(ctx, cmds)
	}
}

// A panic in a hook fails the call. The program goes on, and so do later calls.
func TestPanicOfAHook(t *testing.T) {
	s, on := start(t), new(atomic.Bool)
	s.store.servers.Client.AddHook(faulty{on})
	on.Store(true)
	if _, err := s.Allow(t.Context(), ask(hourly, "k")); !errors.As(err, new(*ratelimit.StoreError)) {
		t.Errorf("got error %v", err)
	}
	on.Store(false)
	s.admit(t, ask(hourly, "k"))
}
