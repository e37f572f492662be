package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// openRemembering returns a store that remembers refusals for the time of a test, and a server that knows its function.
func openRemembering(t testing.TB) (*store, *redistest.Server) {
	s, server := open(t, WithRefusalMemory(time.Hour))
	decideOnce(t, s, of(minute, 9, "warm"))
	redistest.Eventually(t, "the function", func() bool { return server.Do("FUNCTION LIST") != "" })
	return s, server
}

func decideOnce(t testing.TB, s *store, call engine.Call) (engine.Verdict, engine.Call) {
	t.Helper()
	c := call.Clone()
	v, err := s.Decide(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return v, *c
}

// requireRemembered checks whether a refusal of the call comes from memory.
func requireRemembered(t testing.TB, s *store, call engine.Call, remembered bool) {
	t.Helper()
	if v, c := decideOnce(t, s, call); v.Admitted || (v.Source == engine.SourceMemory) != remembered {
		t.Fatalf("got %+v of %+v, want it to be remembered: %t", v, c, remembered)
	}
}

// A refusal is remembered only as long as the rule would refuse by the server's clock.
func TestRefusalEndsInTime(t *testing.T) {
	s, server := openRemembering(t)
	for _, r := range combinable {
		short := *r
		short.Per, short.Tag = 50_000, "50ms"
		recalled := 0
		redistest.Eventually(t, "refusals that are remembered", func() bool {
			for range 20 {
				before := serverTime(t, server)
				v, c := decideOnce(t, s, of(&short, 2, "a"))
				if !v.Admitted && c.Claims[0].Earliest <= before {
					t.Fatalf("%s: refused until %d at %d, remembered: %t", r.Name, c.Claims[0].Earliest, before, (v.Source == engine.SourceMemory))
				}
				if v.Source == engine.SourceMemory {
					recalled++
				}
			}
			return recalled >= 100
		})
	}
}

func serverTime(t testing.TB, server *redistest.Server) int64 {
	var seconds, micros int64
	if _, err := fmt.Sscan(server.Do("TIME"), &seconds, &micros); err != nil {
		t.Fatal(err)
	}
	return seconds*second + micros
}

// If this process gives permits back, resets a count or raises a limit, it forgets refusals at once.
func TestRefusalIsForgotten(t *testing.T) {
	t.Parallel()
	s, _ := openRemembering(t)
	call := of(combinable[1], 1, "a", "b")
	_, charged := decideOnce(t, s, call)
	for name, undo := range map[string]func() error{
		"refund": func() error {
			charged.Claims[0].Delta, charged.Claims[1].Delta = -1, -1
			return s.Adjust(context.Background(), &charged)
		},
		"reset": func() error { _, err := s.Reset(context.Background(), &call); return err },
	} {
		requireRemembered(t, s, call, false)
		requireRemembered(t, s, call, true)
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		var v engine.Verdict
		if v, charged = decideOnce(t, s, call); !v.Admitted {
			t.Errorf("%s: refused, %+v", name, v)
		}
	}
	requireRemembered(t, s, call, false)
	if v, _ := decideOnce(t, s, of(combinable[1], 2, "a", "b")); !v.Admitted {
		t.Errorf("a higher limit: refused, %+v", v)
	}
}

// A refusal is not remembered if a refund was made after the call was sent.
func TestRefusalThatARefundOvertakes(t *testing.T) {
	t.Parallel()
	s, _ := openRemembering(t)
	call := of(minute, 1, "a")
	decideOnce(t, s, call)
	changes := s.answers.changes.Load()
	refused := call.Clone()
	v, err := s.Decide(context.Background(), refused)
	if err != nil || v.Admitted {
		t.Fatal(v, err)
	}
	s.answers.forget(&call)
	s.answers.remember(refused, v, moment{clock(), changes})
	if r := (&request{call: &call}); r.recalled(&s.answers) {
		t.Errorf("recalled %+v", r.verdict)
	}
}

// The server is always asked about calls that could get another answer than the remembered refusal.
func TestWhatIsAlwaysAsked(t *testing.T) {
	t.Parallel()
	s, _ := openRemembering(t)
	distinct := &engine.Rule{Name: "distinct", Tag: "1h", Kind: engine.Distinct, Per: 3600 * second}
	member := func(m string) engine.Call {
		call := of(distinct, 1, "a")
		call.Claims[0].Member = m
		return call
	}
	decideOnce(t, s, member("x"))
	requireRemembered(t, s, member("y"), false)
	requireRemembered(t, s, member("y"), false)
	if v, _ := decideOnce(t, s, member("x")); !v.Admitted {
		t.Errorf("a known member is refused: %+v", v)
	}
	call := of(combinable[0], 3, "a")
	call.Claims[0].Cost = 2
	decideOnce(t, s, call)
	requireRemembered(t, s, call, false)
	requireRemembered(t, s, call, true)
	for name, change := range map[string]func(*engine.Call){
		"peek": func(c *engine.Call) { c.Peek = true }, "up to": func(c *engine.Call) { c.UpTo = true },
		"report": func(c *engine.Call) { c.Report = true }, "wait": func(c *engine.Call) { c.Claims[0].Wait = 1 },
		"shadow": func(c *engine.Call) { c.Claims[0].Mode = engine.Shadow }, "cost": func(c *engine.Call) { c.Claims[0].Cost = 1 }, "subject": func(c *engine.Call) { c.Claims[0].Subject = "b" },
		"refused": func(c *engine.Call) { c.Refused = true },
	} {
		other := call.Clone()
		change(other)
		known := s.answers.find(&call)
		s.answers.mu.Lock()
		s.answers.byCall[hash(other)] = known // as if they had one hash
		s.answers.mu.Unlock()
		if r := (&request{call: other}); r.recalled(&s.answers) {
			t.Errorf("%s: recalled %+v", name, r.verdict)
		}
	}
}

// A remembered refusal answers calls that cost as much or more. The server is asked about calls that cost less.
func TestRefusalOfAnotherCost(t *testing.T) {
	t.Parallel()
	s, _ := openRemembering(t)
	costing := func(n int64) engine.Call {
		call := of(combinable[0], 4, "a")
		call.Claims[0].Cost = n
		return call
	}
	decideOnce(t, s, costing(2))
	requireRemembered(t, s, costing(3), false)
	_, refused := decideOnce(t, s, costing(3))
	for _, cost := range []int64{3, 4} {
		requireRemembered(t, s, costing(cost), true)
		if _, c := decideOnce(t, s, costing(cost)); !c.Claims[0].Refused || c.Claims[0].Earliest != refused.Claims[0].Earliest {
			t.Errorf("a cost of %d: got %+v, want what was refused, %+v", cost, c, refused)
		}
	}
	if v, _ := decideOnce(t, s, costing(2)); !v.Admitted {
		t.Errorf("a lower cost: refused, %+v", v)
	}
}

// A remembered refusal reports all rules that still refuse.
func TestRefusalTellsAllRules(t *testing.T) {
	t.Parallel()
	s, _ := openRemembering(t)
	short, long := *combinable[0], combinable[1]
	short.Per, short.Tag = 200_000, "200ms"
	call := of(&short, 1, "a")
	call.Claims = append(call.Claims, of(long, 1, "a").Claims...)
	decideOnce(t, s, call)
	_, first := decideOnce(t, s, call)
	for {
		v, c := decideOnce(t, s, call)
		if v.Source != engine.SourceMemory || !c.Claims[1].Refused || c.Claims[1].Earliest != first.Claims[1].Earliest {
			t.Fatalf("got %+v of %+v", v, c)
		}
		if c.Claims[0].Refused != (first.Claims[0].Earliest > v.Now) {
			t.Fatalf("at %d: got %+v, first %+v", v.Now, c.Claims[0], first.Claims[0])
		}
		if !c.Claims[0].Refused {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// However many callers there are, the server is asked about a refused subject only once each time the memory ends. The memory is bounded.
func TestRefusalsSpareTheServer(t *testing.T) {
	t.Parallel()
	s, server := openRemembering(t)
	for _, r := range combinable {
		decideOnce(t, s, of(r, 1, "a"))
	}
	server.Do("CONFIG RESETSTAT")
	var n atomic.Int64
	admitted, failed := crowd(s, 64, 1000, func() (context.Context, *engine.Call) {
		call := of(combinable[n.Add(1)%4], 1, "a")
		return context.Background(), &call
	})
	asked, err := strconv.Atoi(commands(server, "fcall"))
	if admitted+failed != 0 || asked > 64 || err != nil {
		t.Errorf("%d admitted, %d failed, %d scripts, %v", admitted, failed, asked, err)
	}
	call, v := of(minute, 1, ""), engine.Verdict{Now: 1}
	call.Claims[0].Refused, call.Claims[0].Earliest = true, 1e15
	for i := range maxFacts + 100 {
		call.Claims[0].Subject = strconv.Itoa(i)
		s.answers.remember(&call, v, s.answers.moment())
	}
	if known := s.answers.size.Load(); known > maxFacts {
		t.Errorf("%d refusals are known", known)
	}
}

// The memory that refusals take is free soon after they have ended.
func TestRefusalsAreForgotten(t *testing.T) {
	s := New(connect(t, "127.0.0.1:1")).(*store)
	allocated := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := allocated()
	call, v := of(minute, 1, ""), engine.Verdict{Now: 1}
	call.Claims[0].Refused, call.Claims[0].Earliest = true, 1e15
	for i := range maxFacts {
		call.Claims[0].Subject = strconv.Itoa(i)
		s.answers.remember(&call, v, s.answers.moment())
	}
	if grown := allocated() - before; grown < 5<<20 {
		t.Errorf("%d refusals take %d bytes", s.answers.size.Load(), grown)
	}
	redistest.Eventually(t, "memory", func() bool { return allocated()-before < 1<<20 })
	runtime.KeepAlive(s)
}

// After the memory has ended, this process notices what another one has given back.
func TestRefusalLastsForItsSpan(t *testing.T) {
	t.Parallel()
	s, server := open(t, WithRefusalMemory(20*time.Millisecond))
	other := New(connect(t, server.Addr), asking...)
	call := of(minute, 1, "a")
	_, charged := decideOnce(t, s, call)
	requireRemembered(t, s, call, false)
	charged.Claims[0].Delta = -1
	if err := other.Adjust(context.Background(), &charged); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the refund", func() bool { v, _ := decideOnce(t, s, call); return v.Admitted })
}

func BenchmarkRecall(b *testing.B) {
	s, _ := open(b, WithRefusalMemory(time.Hour))
	call := of(minute, 1, "a")
	for range 2 {
		_, _ = s.Decide(context.Background(), call.Clone())
	}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		call := call.Clone()
		for p.Next() {
			if v, _ := s.Decide(context.Background(), call); v.Source != engine.SourceMemory {
				b.Error(v)
			}
		}
	})
}

// When a refusal has ended, one caller asks the server again, and the others wait for the answer.
func TestOneAsksAgain(t *testing.T) {
	t.Parallel()
	s, server := openRemembering(t)
	s.servers.Timeout = time.Minute
	call := of(minute, 1, "a")
	decideOnce(t, s, call)
	requireRemembered(t, s, call, false)
	s.answers.find(&call).refusal.Load().until = clock()
	n, err := s.node(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	sent := func() int { n.mu.Lock(); defer n.mu.Unlock(); return n.sending + len(n.waiting) }
	waiting := func() (calls int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, b := range n.waiting {
			calls += len(b.requests)
		}
		return calls
	}
	before := scripts(server)
	server.Pause()
	var callers sync.WaitGroup
	ask := func() {
		v, err := s.Decide(context.Background(), call.Clone())
		if err != nil || v.Admitted {
			t.Errorf("got %+v, %v; want a refusal", v, err)
		}
	}
	callers.Go(ask)
	redistest.Eventually(t, "the first caller", func() bool { return sent() == 1 })
	for range 20 {
		callers.Go(ask)
	}
	redistest.Eventually(t, "the other callers", func() bool { return waiting() == 20 })
	server.Resume()
	callers.Wait()
	if n := scripts(server) - before; n != 1 {
		t.Errorf("%d scripts ran; want 1", n)
	}
}
