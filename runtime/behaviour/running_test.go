package behaviour_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

func atATime(limit int64) ratelimit.Rule {
	return ratelimit.Rule{Name: "run", Algorithm: ratelimit.Concurrency, Limit: limit, Per: 3 * time.Second}
}

// begin begins a call as a generated wrapper does.
func (s *subject) begin(t *testing.T, ctx context.Context, rules *wrap.Rules) (*wrap.Taken, error) {
	t.Helper()
	charges := make([]wrap.Charge, len(rules.Rules()))
	for i := range charges {
		charges[i] = wrap.Charge{Key: "k", Cost: 1}
	}
	return wrap.Begin(ctx, rules.On(s.limiter), rules, charges...)
}

// running returns how many permits of a rule are taken.
func (s *subject) running(t *testing.T, rule ratelimit.Rule) int64 {
	t.Helper()
	d := s.peek(t, ratelimit.Request{Rule: rule, Key: "k"})
	return d.Quotas[0].Limit - d.Quotas[0].Remaining
}

// A released permit is free at once, once. A permit that nobody releases ends after the period. A refusal says how many run, and has no delay.
func TestRelease(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: atATime(2), Key: "k"}
		first, second := s.admit(t, q), s.admit(t, q)
		refused := s.refuse(t, q)
		if v := refused.Violations[0]; v.Running != 2 || v.RetryAfter != 0 || v.Remaining != 0 || v.Never || refused.RetryAfter != 0 || refused.Never {
			t.Errorf("got %+v", refused)
		}
		for range 2 {
			if err := first.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.admit(t, q)
		s.refuse(t, q)
		if err := second.Refund(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.admit(t, q)
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.refuse(t, q)
		s.pass(q.Rule.Per)
		if n := s.running(t, q.Rule); n != 0 {
			t.Errorf("%d permits have not ended", n)
		}
	})
}

// A call takes its cost, and other rules of the call keep their charge when it is released.
func TestReleaseLeavesOtherRules(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		run := ratelimit.Request{Rule: atATime(5), Key: "k", Cost: 3}
		window := ratelimit.Request{Rule: ratelimit.Rule{Name: "w", Limit: 2, Per: time.Hour}, Key: "k"}
		d := s.admit(t, run, window)
		if v := s.refuse(t, run).Violations[0]; v.Running != 3 || v.Remaining != 2 {
			t.Errorf("got %+v", v)
		}
		if err := d.Settle(t.Context(), 1, 2); err != nil || s.running(t, run.Rule) != 3 {
			t.Errorf("a settlement leaves %d of 3 permits, error %v", s.running(t, run.Rule), err)
		}
		if err := d.Release(t.Context()); err != nil || s.left(t, window) != 0 || s.running(t, run.Rule) != 0 {
			t.Errorf("%d run, %d are left in the window, error %v", s.running(t, run.Rule), s.left(t, window), err)
		}
		if d := s.refuse(t, run, window); d.RetryAfter < time.Minute || s.running(t, run.Rule) != 0 {
			t.Errorf("a refusal by the window: %d run, %+v", s.running(t, run.Rule), d)
		}
	})
}

// A lowered limit counts the calls that run already.
func TestLoweredLimitOfRunningCalls(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: atATime(4), Key: "k"}
		for range 4 {
			s.admit(t, q)
		}
		q.Rule.Limit = 1
		if v := s.refuse(t, q).Violations[0]; v.Running != 4 || v.Remaining != 0 || v.Limit != 1 {
			t.Errorf("got %+v", v)
		}
	})
}

// The permit of a method that runs longer than the period is renewed, also after the store has lost it, and comes back when the method is over.
func TestRunningCallKeepsItsPermit(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		s, client := onServer(t, server), connect(t, server.Addr)
		rule := atATime(1)
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * rule.Per); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if n := s.running(t, rule); n != 1 {
				t.Fatalf("%d calls run; want 1", n)
			}
		}
		client.FlushAll(t.Context())
		redistest.Eventually(t, "the lost permit is written again", func() bool { return s.running(t, rule) == 1 })
		client.FlushAll(t.Context())
		other, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the lost permit is written beyond the limit", func() bool {
			d := s.refuse(t, ratelimit.Request{Rule: rule, Key: "k"})
			return d.Violations[0].Running == 2
		})
		taken.Release(t.Context())
		other.Release(t.Context())
		if n := s.running(t, rule); n != 0 {
			t.Errorf("%d calls run after the release", n)
		}
	})
}

// The permit of a method that was not begun, so that nothing releases it, ends after the period.
func TestTakenPermitEnds(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		rules, charge := wrap.NewRules("m", atATime(1)), wrap.Charge{Key: "k", Cost: 1}
		for range 2 {
			if err := wrap.TakeCharges(t.Context(), rules.On(s.limiter), rules, charge); err != nil {
				t.Fatal(err)
			}
			s.refuse(t, ratelimit.Request{Rule: atATime(1), Key: "k"})
			s.pass(3 * time.Second)
		}
	})
}

// A method's permit in memory does not end while it runs: nobody else counts there, and nothing renews it.
func TestRunningCallInMemory(t *testing.T) {
	c := newClock()
	s := inMemory(c)
	for _, scope := range []ratelimit.Scope{ratelimit.ScopeFleet, ratelimit.ScopeInstance} {
		rule := atATime(1)
		rule.Scope = scope
		taken, err := s.begin(t, t.Context(), wrap.NewRules("p.T.M", rule))
		if err != nil {
			t.Fatal(err)
		}
		c.pass(1000 * time.Hour)
		s.refuse(t, ratelimit.Request{Rule: rule, Key: "k"})
		taken.Release(t.Context())
		s.admit(t, ratelimit.Request{Rule: rule, Key: "k"})
	}
}

// Whatever calls do while they run, never more than the limit run at the same time in several limiters, and none of their permits stays.
func TestNeverMoreThanTheLimitRun(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) []*subject{
		"memory": func(*testing.T) []*subject { return []*subject{{limiter: ratelimit.New(memstore.New())}} },
		"redis": func(t *testing.T) []*subject {
			server := redistest.Start(t)
			return []*subject{onServer(t, server), onServer(t, server), onServer(t, server)}
		},
		"evalsha": func(t *testing.T) (all []*subject) {
			server := redistest.Start(t)
			for range 3 {
				all = append(all, onServer(t, server, scriptedBy["evalsha"]...))
			}
			return all
		},
		"cluster": func(t *testing.T) (all []*subject) {
			servers := redistest.StartCluster(t, 3)
			for range 3 {
				all = append(all, &subject{limiter: ratelimit.New(scripted(connectCluster(t, servers)))})
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			subjects, rule := start(t), atATime(3)
			rule.Wait = patience
			rules := wrap.NewRules("p.T.M", rule)
			var running, most atomic.Int64
			var all sync.WaitGroup
			for i := range 12 {
				all.Go(func() {
					for n := range 10 {
						run(t, subjects[i%len(subjects)], rules, &running, &most, n)
					}
				})
			}
			all.Wait()
			if most.Load() > rule.Limit {
				t.Errorf("%d calls ran at the same time; the limit is %d", most.Load(), rule.Limit)
			}
			if n := subjects[0].running(t, rule); n != 0 {
				t.Errorf("%d permits stay", n)
			}
		})
	}
}

// run makes a call that returns, panics, or ends its goroutine.
func run(t *testing.T, s *subject, rules *wrap.Rules, running, most *atomic.Int64, n int) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		taken, err := s.begin(t, context.Background(), rules)
		if err != nil {
			t.Error(err)
			return
		}
		defer taken.Release(context.Background())
		defer running.Add(-1)
		for now := running.Add(1); ; {
			before := most.Load()
			if now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}
		runtime.Gosched()
		switch n % 3 {
		case 0:
			panic("of the method")
		case 1:
			runtime.Goexit()
		}
	}()
	<-over
}

// Calls that wait in one process are admitted in the order in which they came, as soon as permits come back there, and who comes meanwhile does not
// overtake them. The clock of the bubble shows that nobody waits for the next ask.
func TestWaitersWakeInOrder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		rule := atATime(1)
		rule.Wait = time.Hour
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 10)
		gaveUp, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			ctx := t.Context()
			if i == 0 || i == 4 {
				ctx = gaveUp
			}
			go func() {
				taken, err := s.begin(t, ctx, rules)
				if ctx == gaveUp {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("a call that gave up: %v", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				taken.Release(ctx)
			}()
			time.Sleep(time.Millisecond)
		}
		cancel()
		synctest.Wait()
		began := time.Now()
		if d := s.refuse(t, ratelimit.Request{Rule: rule, Key: "k"}); d.Violations[0].Running != 1 {
			t.Errorf("got %+v", d)
		}
		taken.Release(t.Context())
		for _, want := range []int{1, 2, 3, 5, 6, 7, 8, 9} {
			if got := <-order; got != want {
				t.Errorf("call %d is admitted, want %d", got, want)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the calls waited for %v after the release", waited)
		}
	})
}

// A call that does not wait is refused while others wait, also in the moment in which a permit comes back.
func TestNobodyOvertakesWaiters(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: atATime(1), Key: "k"}
		first, admitted := s.admit(t, q), make(chan ratelimit.Decision)
		for range 2 {
			go func() {
				d, err := s.limiter.Wait(t.Context(), q)
				if err != nil {
					t.Error(err)
				}
				admitted <- d
			}()
		}
		synctest.Wait()
		for _, running := range []func() ratelimit.Decision{func() ratelimit.Decision { return first }, func() ratelimit.Decision { return <-admitted }} {
			if err := running().Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := s.refuse(t, q); d.Violations[0].RetryAfter != 0 {
				t.Errorf("got %+v", d)
			}
		}
		if err := (<-admitted).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.admit(t, q)
	})
}

// Of the calls that wait for others to end, only the first one asks.
func TestOnlyTheFirstWaiterAsks(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		store := &counting{Store: s.store}
		s.limiter = ratelimit.New(store)
		q := ratelimit.Request{Rule: atATime(1), Key: "k"}
		running := s.admit(t, q)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := s.limiter.Wait(ctx, q); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		before := store.decisions.Load()
		time.Sleep(900 * time.Millisecond)
		if asked := store.decisions.Load() - before; asked > 18 { // every 50 ms
			t.Errorf("100 waiters asked %d times in 900 ms", asked)
		}
		leave()
		all.Wait()
		if err := running.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// counting is a store that counts its decisions.
type counting struct {
	ratelimit.Store
	decisions atomic.Int64
}

func (c *counting) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	c.decisions.Add(1)
	return c.Store.Decide(ctx, call)
}

// A call that waits notices within 50 ms what comes back elsewhere, and is refused when its wait ends.
func TestWaiterNoticesOtherProcesses(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		other := &subject{limiter: ratelimit.New(bare{s.store})}
		rule := atATime(1)
		rule.Wait = time.Second
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := other.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.begin(t, t.Context(), rules); !errors.Is(err, ratelimit.ErrTooManyRequests) || time.Since(began) != rule.Wait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.AfterFunc(333*time.Millisecond, func() { taken.Release(context.Background()) })
		began = time.Now()
		_, err = s.begin(t, t.Context(), rules)
		if waited := time.Since(began); err != nil || waited < 333*time.Millisecond || waited > 383*time.Millisecond {
			t.Errorf("after %v: %v", waited, err)
		}
	})
}

// A pause holds a call that stood behind another one. It is not refused when that one gives up.
func TestPauseBehindAnotherCall(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		rule := atATime(1)
		rule.Wait = time.Minute
		rules := wrap.NewRules("p.T.M", rule)
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		gaveUp, cancel := context.WithCancel(t.Context())
		first, second := make(chan error), make(chan error)
		go func() {
			_, err := s.begin(t, gaveUp, rules)
			first <- err
		}()
		synctest.Wait()
		go func() {
			taken, err := s.begin(t, t.Context(), rules)
			if err == nil {
				taken.Release(t.Context())
			}
			second <- err
		}()
		synctest.Wait()
		if err := s.limiter.Pause(t.Context(), 3*time.Second, ratelimit.Request{Rule: rule, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that gave up: %v", err)
		}
		taken.Release(t.Context())
		if err := <-second; err != nil {
			t.Errorf("the call behind it: %v", err)
		}
	})
}

// behindProxy returns a limiter that reaches the server through a proxy, and one that reaches it directly.
func behindProxy(t *testing.T) (s, direct *subject, proxy *redistest.Proxy) {
	server := redistest.Start(t)
	proxy = redistest.StartProxy(t, server.Addr)
	s = &subject{limiter: ratelimit.New(scripted(connect(t, proxy.Addr)))}
	return s, onServer(t, server), proxy
}

// A lost reply leaves no permit: what the server admitted is given back, long before it would end.
func TestLostReplyLeavesNoPermit(t *testing.T) {
	t.Parallel()
	s, direct, proxy := behindProxy(t)
	rule := atATime(1000)
	rule.Per = time.Hour
	q, rules := ratelimit.Request{Rule: rule, Key: "k"}, wrap.NewRules("p.T.M", rule)
	if err := s.admit(t, q).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Allow": func() error {
			d, err := s.limiter.Allow(t.Context(), q)
			_ = d.Release(t.Context())
			return err
		},
		"Begin": func() error {
			taken, err := s.begin(t, t.Context(), rules)
			if err == nil {
				taken.Release(t.Context())
			}
			return err
		},
	} {
		for lost := false; !lost; { // the beat may lose its reply instead
			proxy.Replies.Store(0)
			lost = call() != nil
		}
		redistest.Eventually(t, name+" holds nothing", func() bool { return direct.running(t, rule) == 0 })
	}
}

// A permit comes back also if the server did not get its release.
func TestLostReleaseLeavesNoPermit(t *testing.T) {
	t.Parallel()
	s, direct, proxy := behindProxy(t)
	rule := atATime(1000)
	rule.Per = time.Hour
	rules := wrap.NewRules("p.T.M", rule)
	var all []*wrap.Taken
	for range 10 {
		taken, err := s.begin(t, t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, taken)
	}
	lost := false
	for i, taken := range all {
		proxy.Requests.Store(0)
		taken.Release(t.Context())
		lost = lost || direct.running(t, rule) > int64(len(all)-i-1)
	}
	if !lost {
		t.Error("the server got all releases")
	}
	redistest.Eventually(t, "the permits are back", func() bool { return direct.running(t, rule) == 0 })
}

// Over an outage, permits of calls that ended meanwhile come back, and those of calls that go on stay taken, also if the server has lost them.
func TestRunningCallsOverAnOutage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"keeps its data": {"--appendonly", "yes", "--appendfsync", "always"}, "loses its data": nil} {
		server := redistest.Start(t, args...)
		s, rule := onServer(t, server), atATime(1000)
		rule.Per = time.Hour
		rules := wrap.NewRules("p.T.M", rule)
		var all []*wrap.Taken
		for range 5 {
			taken, err := s.begin(t, t.Context(), rules)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, taken)
		}
		server.Stop()
		for _, taken := range all[:3] {
			taken.Release(t.Context())
		}
		server.Restart()
		count := func() int64 {
			d, err := s.limiter.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
			if err != nil {
				return -1
			}
			return d.Quotas[0].Limit - d.Quotas[0].Remaining
		}
		redistest.Eventually(t, "two calls run on a server that "+name, func() bool { return count() == 2 })
		for _, taken := range all[3:] {
			taken.Release(t.Context())
		}
		redistest.Eventually(t, "no call runs on a server that "+name, func() bool { return count() == 0 })
	}
}

// While the store fails, the failure policy decides. What it lets pass is over without a trace.
func TestRunningCallsWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	for policy, most := range map[ratelimit.FailurePolicy]int{ratelimit.FailOpen: 5, ratelimit.FailLocal: 2, ratelimit.FailClosed: 0} {
		server := redistest.Start(t)
		rule := atATime(2)
		rule.OnError = policy
		s := onServer(t, server)
		rules := wrap.NewRules("p.T.M", rule)
		server.Stop()
		for range 2 {
			var held []*wrap.Taken
			for range 5 {
				if taken, err := s.begin(t, t.Context(), rules); err == nil {
					held = append(held, taken)
				}
			}
			if len(held) != most {
				t.Errorf("%s: %d calls run, want %d", policy, len(held), most)
			}
			for _, taken := range held {
				taken.Release(t.Context())
			}
		}
	}
}

// asker may be asked by one caller at a time. The others are answered at once.
type asker interface {
	//ratelimit:rule name=asks key=all algorithm=concurrency limit=1 per=3s
	//ratelimit:fallback answerAtOnce
	ask(ctx context.Context) (string, error)
}

func answerAtOnce(context.Context) (string, error) { return "at once", nil }

type askerFunc func(context.Context) (string, error)

func (f askerFunc) ask(ctx context.Context) (string, error) { return f(ctx) }

// A refused call runs its fallback without a permit, and takes none from the call that runs.
func TestFallbackOfARunningCall(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		var limited asker
		limited = newLimitedAsker(askerFunc(func(ctx context.Context) (string, error) { return limited.ask(ctx) }), s.limiter)
		q := ratelimit.Request{Rule: askerRules()[0], Key: "all"}
		for range 2 {
			if answer, err := limited.ask(t.Context()); answer != "at once" || err != nil {
				t.Errorf("got %q, %v", answer, err)
			}
			if d := s.peek(t, q); d.Quotas[0].Remaining != 1 {
				t.Errorf("%d permits are left after the call", d.Quotas[0].Remaining)
			}
		}
		direct := newLimitedAsker(askerFunc(func(context.Context) (string, error) { return "asked", nil }), s.limiter)
		if answer, err := direct.ask(t.Context()); answer != "asked" || err != nil {
			t.Errorf("got %q, %v", answer, err)
		}
	})
}

// A call that running calls hold until the deadline of its context returns the context's error, whatever the store.
func TestDeadlineOfAHeldCall(t *testing.T) {
	inRealTime(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: atATime(1), Key: "k"}
		s.admit(t, q)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := s.limiter.Wait(ctx, q)
			if cancel(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want the context's", err)
			}
		}
	})
}
