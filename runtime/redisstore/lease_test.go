package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// leasing returns rules whose permits do not come back within a test, and are taken ahead for the given time.
func leasing(t testing.TB, lease time.Duration) []*engine.Rule {
	hour, us := int64(3600*second), lease.Microseconds()
	return []*engine.Rule{
		{Name: "sliding", Tag: "1h", Kind: engine.SlidingWindow, Per: hour, Lease: us},
		{Name: "fixed", Tag: "1h", Kind: engine.FixedWindow, Per: hour, Lease: us},
		{Name: "year", Tag: "cron", Kind: engine.Calendar, Schedule: schedule(t, fmt.Sprintf("0 0 0 1 %d *", (time.Now().UTC().Month()+5)%12+1)), Lease: us},
	}
}

const long = time.Minute // a lease that does not end within a test

// handed makes calls until one is admitted by a lease. It returns that call, and how many were admitted.
func handed(t testing.TB, s *store, call engine.Call) (engine.Call, int64) {
	t.Helper()
	for n := int64(1); n < 100; n++ {
		v, c := decideOnce(t, s, call)
		if !v.Admitted {
			t.Fatalf("refused: %+v", c)
		}
		if v.Source == engine.SourceLease {
			return c, n
		}
	}
	t.Fatal("no call is admitted by a lease")
	return call, 0
}

func leaseOf(s *store, call *engine.Call) *lease { return s.answers.lease(call) }

// requireNoLeases waits until nothing is known about calls.
func requireNoLeases(t testing.TB, s *store) {
	redistest.Eventually(t, "the end of leases", func() bool { return s.answers.size.Load() == 0 })
}

// inHand returns how many permits a store has taken ahead for a call.
func inHand(s *store, call engine.Call) int64 {
	l := leaseOf(s, &call)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.permits
}

// scripts returns how many scripts a server has run.
func scripts(server *redistest.Server) (n int64) {
	for _, line := range strings.Split(server.Do("INFO commandstats"), "\r\n") {
		for _, name := range []string{"fcall", "evalsha", "eval"} {
			var calls int64
			if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d,", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

// With a lease, many callers need few scripts, and exactly the limit is admitted.
func TestLeaseOfACrowd(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	for _, r := range leasing(t, long) {
		before := scripts(server)
		admitted, failed := crowd(s, 64, 200, func() (context.Context, *engine.Call) {
			call := of(r, 10_000, "a")
			return context.Background(), &call
		})
		if admitted != 10_000 || failed != 0 {
			t.Errorf("%s: %d of %d were admitted, %d failed", r.Name, admitted, 10_000, failed)
		}
		if n := scripts(server) - before; n > 3200 { // 2,800 refused calls ask the server, up to 64 in a run
			t.Errorf("%s: %d scripts for %d calls", r.Name, n, 64*200)
		}
	}
}

// Several callers who find a lease used up take only one new lease.
func TestOneLeaseForAll(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	call := of(leasing(t, long)[1], 1e6, "a")
	for range 100 {
		decideOnce(t, s, call)
	}
	l := leaseOf(s, &call)
	l.mu.Lock()
	l.permits = 0
	l.mu.Unlock()
	before := scripts(server)
	server.Pause()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() { decideOnce(t, s, call) })
	}
	redistest.Eventually(t, "a caller who takes the next lease", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.taking != nil
	})
	server.Resume()
	all.Wait()
	if n := scripts(server) - before; n != 1 {
		t.Errorf("%d scripts", n)
	}
}

// Unused permits are given back when the lease ends, even if there are no more calls.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for _, r := range append(leasing(t, 20*time.Millisecond), &engine.Rule{
		Name: "bucket", Tag: "10d", Kind: engine.TokenBucket, Per: 240 * 3600 * second, Lease: 20_000,
	}) {
		call := of(r, 1000, "a")
		_, used := handed(t, s, call)
		redistest.Eventually(t, "what "+r.Name+" has left", func() bool { return rooms(t, s, call)[0] == 1000-used })
		requireNoLeases(t, s)
	}
}

// No permit is handed out after its lease has ended by the server's clock.
func TestLeaseEndsInTime(t *testing.T) {
	s, server := open(t)
	call := of(leasing(t, 10*time.Millisecond)[0], 1e6, "a")
	leased := 0
	redistest.Eventually(t, "permits of leases", func() bool {
		for range 20 {
			decideOnce(t, s, call)
		}
		before := serverTime(t, server)
		v, c := decideOnce(t, s, call)
		if v.Source == engine.SourceLease {
			leased++
			if end := c.Claims[0].At; before >= end || v.At >= end {
				t.Fatalf("the lease ended at %d; a permit is handed out at %d, dated %d", end, before, v.At)
			}
		}
		return leased >= 50
	})
}

// Two processes hand out, give back and settle permits at random, with contexts that end at any time. In the end exactly those permits are used
// that calls kept.
func TestLeasesLoseNothing(t *testing.T) {
	t.Parallel()
	first, server := open(t)
	second := New(connect(t, server.Addr), asking...).(*store)
	rules := leasing(t, 5*time.Millisecond)
	call := engine.Call{Prefix: "p"}
	for _, r := range rules {
		call.Claims = append(call.Claims, of(r, 1e6, "a").Claims...)
	}
	kept := make([]atomic.Int64, len(rules))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 300 {
				spend(t, []*store{first, second}[i%2], call.Clone(), kept)
			}
		})
	}
	all.Wait()
	for i, r := range rules {
		want := int64(1e6) - kept[i].Load()
		redistest.Eventually(t, "what "+r.Name+" has left", func() bool { return rooms(t, first, call)[i] == want })
	}
}

// spend decides a call, changes its charge, and counts the permits that it keeps from each rule.
func spend(t *testing.T, s *store, call *engine.Call, kept []atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cost := rand.N(int64(3)) + 1
	for i := range call.Claims {
		call.Claims[i].Cost = cost
	}
	if rand.N(4) == 0 {
		time.AfterFunc(rand.N(time.Millisecond), cancel)
	}
	if _, err := s.Decide(ctx, call); err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return
	}
	if rand.N(8) == 0 {
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	all, what := rand.N(2) == 0, rand.N(3)
	for i := range call.Claims {
		c := &call.Claims[i]
		if all || i == 0 {
			c.Delta = []int64{0, -c.Charged, 2 - c.Charged}[what]
		}
		kept[i].Add(c.Charged + c.Delta)
	}
	if what > 0 {
		if err := s.Adjust(context.Background(), call); err != nil {
			t.Error(err)
		}
	}
}

// If connections break, permits that were taken ahead may be lost. But no permit is handed out that the server did not charge.
func TestLeasesAndKilledConnections(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	rules := leasing(t, 5*time.Millisecond)
	stop := keepKilling(server)
	admitted, failed := crowd(s, 32, 300, func() (context.Context, *engine.Call) {
		call := of(rules[0], 1e6, "a")
		call.Claims = append(call.Claims, of(rules[1], 1e6, "a").Claims...)
		return context.Background(), &call
	})
	stop()
	redistest.Eventually(t, "the server", func() bool {
		call := of(rules[2], 1e6, "a")
		_, err := s.Decide(context.Background(), &call)
		return err == nil
	})
	requireNoLeases(t, s)
	for _, r := range rules[:2] {
		if used := 1e6 - rooms(t, s, of(r, 1e6, "a"))[0]; used < admitted {
			t.Errorf("%s: %d permits are used, %d calls were admitted, %d failed", r.Name, used, admitted, failed)
		}
	}
}

// Permits that a call gives back while its lease lasts are handed out again without asking the server.
func TestRefundToALease(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	for _, r := range leasing(t, long) {
		call, _ := handed(t, s, of(r, 1000, "a"))
		left, before := inHand(s, call), scripts(server)
		call.Claims[0].Delta = -1
		if err := s.Adjust(context.Background(), call.Clone()); err != nil {
			t.Fatal(err)
		}
		if got := inHand(s, call); got != left+1 || scripts(server) != before {
			t.Errorf("%s: %d permits in hand, want %d", r.Name, got, left+1)
		}
	}
}

// If the rules of a call are settled at different costs, or the lease has ended, permits are given back to the server.
func TestRefundBesideALease(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	rules := leasing(t, long)
	call := of(rules[0], 1000, "a")
	call.Claims = append(call.Claims, of(rules[1], 1000, "a").Claims...)
	for name, end := range map[string]func(){"one rule": func() {}, "after the end": func() { leaseOf(s, &call).takeBack() }} {
		charged, _ := handed(t, s, call)
		end()
		left, before := inHand(s, call), rooms(t, s, call)
		charged.Claims[0].Delta = -1
		if err := s.Adjust(context.Background(), &charged); err != nil || charged.Claims[0].Delta != 0 {
			t.Fatal(err, charged.Claims[0].Delta)
		}
		if after := rooms(t, s, call); after[0] != before[0]+1 || after[1] != before[1] || inHand(s, call) != left {
			t.Errorf("%s: %v are left, want one more than %v of the first rule", name, after, before)
		}
	}
}

// A reset ends leases of its rules. What these leases took from other rules is given back.
func TestResetEndsLeases(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	rules := leasing(t, long)
	call := of(rules[0], 20, "a")
	call.Claims = append(call.Claims, of(rules[1], 1000, "a").Claims...)
	used := int64(0)
	for range 2 {
		_, n := handed(t, s, call)
		used += n
		first := engine.Call{Prefix: call.Prefix, Claims: call.Claims[:1]}
		if _, err := s.Reset(context.Background(), &first); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "what the other rule has left", func() bool { return slices.Equal(rooms(t, s, call), []int64{20, 1000 - used}) })
	}
	requireAdmits(t, s, func() engine.Call { return *call.Clone() }, 40, 20)
	if _, err := s.Reset(context.Background(), &call); err != nil { // of all rules: nothing goes back
		t.Fatal(err)
	}
	handed(t, s, call)
	if _, err := s.Reset(context.Background(), &call); err != nil {
		t.Fatal(err)
	}
	if left := rooms(t, s, call); left[0] != 20 || left[1] != 1000 || inHand(s, call) != 0 {
		t.Errorf("%v are left after a reset of all rules, and %d in hand", left, inHand(s, call))
	}
}

// The unused permits of a lease are given back once, even if the next lease is asked for twice because this process had the server's time wrong.
func TestLeaseByAWrongClock(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	call := of(leasing(t, long)[2], 1000, "a")
	n, err := s.node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_, used := handed(t, s, call)
	for _, off := range []time.Duration{400 * 24 * time.Hour, -400 * 24 * time.Hour} {
		for inHand(s, call) < 2 {
			decideOnce(t, s, call)
			used++
		}
		l := leaseOf(s, &call)
		l.mu.Lock()
		l.until = 0 // it is over, with permits left
		l.mu.Unlock()
		n.noteTime(time.Now().Add(off).UnixMicro())
		if v, _ := decideOnce(t, s, call); !v.Admitted {
			t.Fatal("refused")
		}
		used++
		if left := rooms(t, s, call)[0] + inHand(s, call); left != 1000-used {
			t.Errorf("%d permits are left or in hand, want %d", left, 1000-used)
		}
	}
}

// A reset of other states ends no lease.
func TestResetBesideALease(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	rules := leasing(t, long)
	call := of(rules[0], 1000, "a")
	handed(t, s, call)
	left := inHand(s, call)
	otherWindow := *rules[0]
	otherWindow.Tag = "2h"
	for name, change := range map[string]func(*engine.Call){
		"prefix": func(c *engine.Call) { c.Prefix = "q" }, "subject": func(c *engine.Call) { c.Claims[0].Subject = "b" },
		"rule": func(c *engine.Call) { c.Claims[0].Rule = rules[1] }, "window": func(c *engine.Call) { c.Claims[0].Rule = &otherWindow },
	} {
		other := call.Clone()
		change(other)
		if _, err := s.Reset(t.Context(), other); err != nil || inHand(s, call) != left {
			t.Errorf("another %s: %d permits in hand, want %d, error %v", name, inHand(s, call), left, err)
		}
	}
}

// A lease that is on its way during a reset is not handed out.
func TestResetMeetsALease(t *testing.T) {
	t.Parallel()
	server, hook := redistest.Start(t), new(flaky)
	client := connect(t, server.Addr)
	client.AddHook(hook)
	s := New(client, asking...).(*store)
	call := of(leasing(t, long)[0], 1e6, "a")
	for range 10 {
		decideOnce(t, s, call)
	}
	leaseOf(s, &call).takeBack()
	sent, reply, decided, reset := make(chan bool), make(chan bool), make(chan bool), make(chan error)
	hold := func() error {
		hook.before.Store(nil)
		close(sent)
		<-reply
		return nil
	}
	hook.before.Store(&hold)
	go func() {
		decideOnce(t, s, call)
		close(decided)
	}()
	<-sent
	go func() {
		_, err := s.Reset(context.Background(), &call)
		reset <- err
	}()
	redistest.Eventually(t, "the reset", func() bool { return commands(server, "del") != "0" })
	close(reply)
	if err := <-reset; err != nil {
		t.Fatal(err)
	}
	<-decided
	if n := inHand(s, call); n != 0 {
		t.Errorf("%d permits are in hand after the reset", n)
	}
}

// A lease is handed out, and takes permits back, only for its own calls, whatever their hashes are.
func TestLeaseOfAnotherHash(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	call, _ := handed(t, s, of(leasing(t, long)[0], 1000, "a"))
	other := *call.Clone()
	other.Claims[0].Subject, other.Claims[0].Delta = "b", -1
	known := s.answers.find(&call)
	s.answers.mu.Lock()
	s.answers.byCall[hash(&other)] = known
	s.answers.mu.Unlock()
	left := inHand(s, call)
	if leaseOf(s, &other) != nil || s.answers.find(&other) != nil || inHand(s, call) != left {
		t.Errorf("the lease serves another call; %d permits in hand, want %d", inHand(s, call), left)
	}
}

// A changed limit applies at once, because a lease belongs to one limit.
func TestLeaseAndChangedLimit(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for _, r := range leasing(t, long) {
		handed(t, s, of(r, 100, "a"))
		if v, _ := decideOnce(t, s, of(r, 1, "a")); v.Admitted {
			t.Errorf("%s: a limit of 1 admits more", r.Name)
		}
	}
}

// The number of leases in a process is bounded. Calls without a lease ask the server.
func TestLeasesAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	r := leasing(t, long)[0]
	for i := range maxFacts + 10 {
		call := of(r, 1000, fmt.Sprint(i))
		if got := leaseOf(s, &call) != nil; got != (i < maxFacts) {
			t.Fatalf("call %d has a lease: %t", i, got)
		}
	}
	for range 20 {
		if v, _ := decideOnce(t, s, of(r, 1000, "a")); !v.Admitted || (v.Source == engine.SourceLease) {
			t.Fatalf("got %+v, want that the server admits", v)
		}
	}
	if n := s.answers.size.Load(); n != maxFacts {
		t.Errorf("there are %d leases", n)
	}
}

// No permits are taken ahead for a call that needs the exact count, or whose rules differ in cost or lease, or may be on several servers.
func TestWhatIsNotLeased(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	rules, other := leasing(t, long), leasing(t, 2*long)[0]
	for name, change := range map[string]func(call *engine.Call){
		"peek":             func(call *engine.Call) { call.Peek = true },
		"up to":            func(call *engine.Call) { call.UpTo = true },
		"refused":          func(call *engine.Call) { call.Refused = true },
		"wait":             func(call *engine.Call) { call.Claims[1].Wait = 1 },
		"shadow":           func(call *engine.Call) { call.Claims[1].Mode = engine.Shadow },
		"another cost":     func(call *engine.Call) { call.Claims[1].Cost = 2 },
		"another lease":    func(call *engine.Call) { call.Claims[0].Rule = other },
		"another subject":  func(call *engine.Call) { call.Claims[0].Subject = "b"; s.servers.Split.Store(true) },
		"a rule without":   func(call *engine.Call) { r := *rules[0]; r.Lease = 0; call.Claims[0].Rule = &r },
		"a rule of blocks": func(call *engine.Call) { r := *rules[0]; r.Block = 1; call.Claims[0].Rule = &r },
	} {
		call := of(rules[0], 1000, "a")
		call.Claims = append(call.Claims, of(rules[1], 1000, "a").Claims...)
		if leaseOf(s, &call) == nil {
			t.Fatal("permits of a plain call are not taken ahead")
		}
		change(&call)
		if leaseOf(s, &call) != nil {
			t.Errorf("%s: permits are taken ahead", name)
		}
		s.servers.Split.Store(false)
	}
}

// The first error of a hidden cluster shows that a call's rules are on several servers, and that they cannot be leased together.
func TestLeaseOnAHiddenCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	s := New(struct{ redis.UniversalClient }{client}, asking...).(*store)
	rules := leasing(t, long)
	call := of(rules[0], 1000, "a")
	call.Claims = append(call.Claims, of(rules[1], 1000, "b").Claims...)
	requireAdmits(t, s, func() engine.Call { return *call.Clone() }, 10, 10)
	handed(t, s, of(rules[0], 1000, "c"))
}

// The source of a decision by a lease is SourceLease, and its reports count down.
func TestSourceLease(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	limiter := ratelimit.New(s)
	r := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 100, Per: time.Hour, Lease: time.Minute}}
	leased := 0
	for i := range int64(100) {
		ctx, report := ratelimit.WithReport(context.Background())
		d, err := limiter.Allow(ctx, r)
		if err != nil || !d.Allowed {
			t.Fatalf("call %d: %+v, %v", i, d, err)
		}
		if d.Source == ratelimit.SourceLease {
			leased++
		}
		q := report.Quotas()[0]
		if q.Remaining != 99-i || q.Reset <= 0 || q.Reset > time.Hour+time.Minute || q.More <= 0 || q.More > q.Reset {
			t.Errorf("call %d: %+v", i, q)
		}
	}
	if leased < 50 {
		t.Errorf("%d decisions come of a lease", leased)
	}
	if d, err := limiter.Allow(context.Background(), r); err != nil || d.Allowed || d.Source != ratelimit.SourceStore {
		t.Errorf("got %+v, %v", d, err)
	}
}

// BenchmarkLease hands out the permits of one subject.
func BenchmarkLease(b *testing.B) {
	s, server := open(b)
	rule := &engine.Rule{Name: "bucket", Tag: "bucket", Kind: engine.TokenBucket, Per: second, Lease: 200_000}
	limiter := ratelimit.New(s)
	public := ratelimit.Rule{Name: "b", Algorithm: ratelimit.TokenBucket, Limit: 1e7, Per: time.Second, Lease: 200 * time.Millisecond}
	rules := wrap.NewRules("p.T.M", public)
	limits := rules.On(limiter)
	call := engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: rule, Subject: "a", Cost: 1, Limit: 1e7, Burst: 1e7}}}}
	for name, decide := range map[string]func() bool{
		"decide": func() bool {
			v, err := s.Decide(context.Background(), &call)
			return err == nil && v.Admitted
		},
		"allow": func() bool {
			d, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: public, Key: "a"})
			return err == nil && d.Allowed
		},
		"wrapper": func() bool { return wrap.Take(context.Background(), limits, rules, "a") == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := scripts(server)
			for b.Loop() {
				if !decide() {
					b.Fatal("not admitted")
				}
			}
			b.ReportMetric(float64(scripts(server)-before)/float64(b.N), "scripts/op")
		})
	}
}
