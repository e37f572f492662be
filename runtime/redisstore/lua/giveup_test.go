package lua

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

func waiting(kind engine.Kind, limit, burst, wait int64) *engine.Call {
	r := &engine.Rule{Name: "r", Tag: "tag", Kind: kind, Per: second}
	return &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: r, Subject: "s", Cost: 1, Limit: limit, Burst: burst, Wait: wait}}}}
}

// both is the engine and the script, which must agree.
type both struct {
	t     *testing.T
	v     *virtual
	cells map[*engine.Rule]*engine.Cell
}

func newBoth(t *testing.T) *both {
	return &both{t, newVirtual(t), make(map[*engine.Rule]*engine.Cell)}
}

func (b *both) cellsOf(call *engine.Call) (cells []*engine.Cell) {
	for _, c := range call.Claims {
		if b.cells[c.Rule] == nil {
			cell := engine.NewCell(c.Rule)
			b.cells[c.Rule] = &cell
		}
		cells = append(cells, b.cells[c.Rule])
	}
	return cells
}

func (b *both) decide(call *engine.Call) engine.Verdict {
	b.t.Helper()
	copied := *call
	copied.Claims = slices.Clone(call.Claims)
	want := call.Decide(b.cellsOf(call), b.v.now)
	if got, err := b.v.decide(&copied); err != nil || got != want {
		b.t.Fatalf("the script says %+v, error %v; the engine %+v", got, err, want)
	}
	return want
}

// leave gives back the permits of a call, as if the call had not been made.
func (b *both) leave(call *engine.Call) {
	call.Rollback, call.Claims[0].Delta = true, -call.Claims[0].Charged
	copied := *call
	copied.Claims = slices.Clone(call.Claims)
	b.v.adjust(&copied)
	call.Adjust(b.cellsOf(call), b.v.now)
}

// bursts are the kinds that let calls wait, with the burst of each in these tests.
var bursts = map[engine.Kind]int64{engine.SlidingWindow: 0, engine.FixedWindow: 0, engine.TokenBucket: 10, engine.LeakyBucket: 1}

const perSecond = 50 // the limit in these tests

// wait makes a call that waits under a rule, and returns it if it is admitted.
func (b *both) wait(r *engine.Rule, wait int64) *engine.Call {
	b.t.Helper()
	call := waiting(r.Kind, perSecond, bursts[r.Kind], wait)
	call.Claims[0].Rule = r
	if w := b.decide(call); !w.Admitted {
		return nil
	}
	return call
}

// requireWithin fails the test if the calls, of which it has the times, are more than the rule allows in any span.
func requireWithin(t *testing.T, kind engine.Kind, times []int64) {
	t.Helper()
	slices.Sort(times)
	for i := range times {
		for j := i; j < len(times) && times[j] < times[i]+second; j++ {
			most := int64(perSecond)
			switch {
			case kind == engine.FixedWindow:
				most *= 2
			case bursts[kind] > 0:
				most = bursts[kind] + ((times[j]-times[i])*perSecond+second-1)/second
			}
			if n := int64(j - i + 1); n > most {
				t.Fatalf("%d calls within %d us", n, times[j]-times[i])
			}
		}
	}
}

// All calls that wait give up, in any order. What is left is the charge of the calls that ran: the next calls pass as if nobody had waited.
func TestAllWaitersGiveUp(t *testing.T) {
	t.Parallel()
	orders := map[string]func(calls []*engine.Call){
		"first to last": func([]*engine.Call) {},
		"last to first": slices.Reverse[[]*engine.Call],
		"random": func(calls []*engine.Call) {
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		},
	}
	for kind := range bursts {
		for order, arrange := range orders {
			t.Run(kind.String()+" "+order, func(t *testing.T) {
				b, nobody, r := newBoth(t), newBoth(t), waiting(kind, 1, 1, 0).Claims[0].Rule
				var pending []*engine.Call
				for range 150 {
					b.v.set(b.v.now + 7)
					if call := b.wait(r, 10*second); call.Claims[0].At > start+second/20 {
						pending = append(pending, call)
						continue
					} else if at := call.Claims[0].At; true {
						nobody.v.set(at)
						nobody.wait(r, 0)
					}
				}
				b.v.set(start + second/20)
				nobody.v.set(start + second/20)
				arrange(pending)
				for _, call := range pending {
					b.leave(call)
				}
				if n := b.cells[r].FreePlaces(); n > 0 {
					t.Errorf("%d intervals are left", n)
				}
				for i := range 200 {
					got, want := b.wait(r, 5*second), nobody.wait(r, 5*second)
					if got == nil || want == nil || got.Claims[0].At != want.Claims[0].At {
						t.Fatalf("call %d is admitted as %+v; if nobody had waited, as %+v", i, got, want)
					}
				}
			})
		}
	}
}

// A random half of 1,000 waiting calls gives up at once. The next calls use their places: at least 95 % of the limit is used, and never more.
func TestHalfOfTheWaitersGiveUp(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	const length = waiters * second / perSecond
	for kind := range bursts {
		t.Run(kind.String(), func(t *testing.T) {
			b, r, random := newBoth(t), waiting(kind, 1, 1, 0).Claims[0].Rule, rand.New(rand.NewPCG(1, uint64(kind)))
			var calls []*engine.Call
			for range waiters {
				b.v.set(b.v.now + random.Int64N(1000))
				calls = append(calls, b.wait(r, 2*length))
			}
			random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
			var times []int64
			for i, call := range calls {
				if at := call.Claims[0].At; at > b.v.now && i%2 == 0 {
					b.leave(call)
				} else {
					times = append(times, at)
				}
			}
			if n := b.cells[r].FreePlaces(); kind != engine.FixedWindow && (n < 100 || n > 400) {
				t.Errorf("%d intervals are left; about 250 are usual", n)
			}
			stop := b.v.now + length
			for b.v.now < stop {
				b.v.set(b.v.now + 5000)
				if call := b.wait(r, second); call != nil && call.Claims[0].At < stop {
					times = append(times, call.Claims[0].At)
				}
			}
			times = slices.DeleteFunc(times, func(at int64) bool { return at >= stop })
			t.Logf("%d of %d permits used", len(times), waiters)
			if len(times) < 95*waiters/100 {
				t.Errorf("%d of %d permits used", len(times), waiters)
			}
			requireWithin(t, kind, times)
		})
	}
}

// A third of the waiting calls gives up while others keep coming. The next callers get their places: at least
// 95 % of the limit is used, and never more than the limit. The engine has a test of the same name.
func TestPlacesThatAreGivenUpAreUsed(t *testing.T) {
	t.Parallel()
	const gap, length = second / 200, 20 * second
	type caller struct {
		call     *engine.Call
		leavesAt int64
	}
	for kind, burst := range bursts {
		t.Run(kind.String(), func(t *testing.T) {
			b, r, random := newBoth(t), waiting(kind, 1, 1, 0).Claims[0].Rule, rand.New(rand.NewPCG(1, uint64(kind)))
			var callers []caller
			for now := int64(start); now < start+length; now += gap {
				b.v.set(now)
				callers = slices.DeleteFunc(callers, func(c caller) bool {
					leaves := c.leavesAt > 0 && c.leavesAt <= now
					if leaves {
						b.leave(c.call)
					}
					return leaves
				})
				c := caller{call: b.wait(r, second/2)}
				if c.call == nil || c.call.Claims[0].At >= start+length {
					continue
				}
				if place := c.call.Claims[0].At; random.IntN(3) == 0 && place > now+gap {
					c.leavesAt = now + 1 + random.Int64N(place-now-gap)
				}
				callers = append(callers, c)
			}
			given := int64(perSecond * length / second)
			t.Logf("%d of %d permits used", len(callers), given)
			if n := int64(len(callers)); 100*n < 95*given || n > given+burst {
				t.Errorf("%d of %d permits used", n, given)
			}
		})
	}
}

// A state keeps at most 1,024 intervals of free places. If there are more, the engine and the script lose the same ones.
func TestMostFreePlaces(t *testing.T) {
	t.Parallel()
	const most, waiters = 1024, 2100
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.TokenBucket, engine.LeakyBucket} {
		b, r := newBoth(t), waiting(kind, 1, 1, 0).Claims[0].Rule
		wait := func() *engine.Call {
			call := waiting(kind, 1, 1, 2*waiters*second)
			call.Claims[0].Rule = r
			if w := b.decide(call); !w.Admitted {
				t.Fatalf("%s: the verdict is %+v", kind, w)
			}
			return call
		}
		var calls [waiters]*engine.Call
		for i := range calls {
			calls[i] = wait()
		}
		for i := 1; i < waiters-1; i += 2 { // the others stay
			b.leave(calls[i])
		}
		if n := b.cells[r].FreePlaces(); n != most {
			t.Errorf("%s: %d intervals, want %d", kind, n, most)
		}
		for range most + 2 {
			wait()
		}
	}
}

// Several smaller calls can use one place that was given up. Each comes at the exact time that it would have had there.
func TestPartsOfAFreePlace(t *testing.T) {
	t.Parallel()
	for kind, burst := range map[engine.Kind]int64{engine.TokenBucket: 3, engine.Prepaid: 0} {
		for limit := int64(1); limit < 100; limit += 6 {
			b, straight := newBoth(t), newBoth(t)
			r := waiting(kind, 1, 1, 0).Claims[0].Rule
			ask := func(b *both, cost int64) *engine.Call {
				call := waiting(kind, limit, burst, 100*second)
				call.Claims[0].Rule, call.Claims[0].Cost = r, cost
				b.decide(call)
				return call
			}
			ask(b, 3)
			large := ask(b, 3)
			ask(b, 1)
			b.leave(large)
			ask(straight, 3)
			for i := range 3 {
				if got, want := ask(b, 1).Claims[0].At, ask(straight, 1).Claims[0].At; got != want {
					t.Errorf("%s, %d a second: part %d of a place is %d us after its time", kind, limit, i, got-want)
				}
			}
		}
	}
}

// The limit changes while calls wait. Then the waiting calls give up, in any order. The engine and the script have the same place for the next call.
func TestWaitersGiveUpAfterTheLimitChanged(t *testing.T) {
	t.Parallel()
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.TokenBucket, engine.LeakyBucket, engine.Prepaid} {
		b, random := newBoth(t), rand.New(rand.NewPCG(1, 2))
		for i := range 100 {
			r := waiting(kind, 1, 1, 0).Claims[0].Rule
			r.Name += strconv.Itoa(i)
			ask := func() *engine.Call {
				limit := []int64{1, 3}[random.IntN(2)]
				burst := []int64{0, limit}[random.IntN(2)]
				if kind == engine.TokenBucket { // which has a burst
					burst = limit
				}
				call := waiting(kind, limit, burst, 100*second)
				call.Claims[0].Rule = r
				b.decide(call)
				return call
			}
			calls := make([]*engine.Call, 10)
			for i := range calls {
				calls[i] = ask()
			}
			for _, i := range random.Perm(len(calls)) {
				if calls[i].Claims[0].At > b.v.now {
					b.leave(calls[i])
				}
			}
			ask()
		}
	}
}
