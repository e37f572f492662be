package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// expect decides a call and checks whether it is admitted.
func expect(t *testing.T, s *Store, call *engine.Call, admitted bool) engine.Verdict {
	t.Helper()
	v, err := s.Decide(t.Context(), call)
	if err != nil || v.Admitted != admitted {
		t.Fatalf("%s: admitted is %t, error %v; expected %t", call.Claims[0].Subject, v.Admitted, err, admitted)
	}
	return v
}

func expectFull(t *testing.T, s *Store, call *engine.Call) {
	t.Helper()
	if v, err := s.Decide(t.Context(), call); !errors.Is(err, ErrFull) {
		t.Fatalf("%s: %+v, error %v; expected %v", call.Claims[0].Subject, v, err, ErrFull)
	}
}

func expectKeys(t *testing.T, s *Store, want int64) {
	t.Helper()
	if got := s.bound.keys.Load(); got != want {
		t.Fatalf("%d keys are kept; expected %d", got, want)
	}
	requireWhole(t, s)
}

// Whatever its bound, a full store forgets no live count: a fixed window admits the same calls as a plain map of windows. The store is full
// only if as many counts are live as the bound allows.
func TestFullStoreKeepsWhatIsLive(t *testing.T) {
	type window struct{ stop, used int64 }
	rapid.Check(t, func(t *rapid.T) {
		clock := &hand{now: hour}
		most := rapid.Int64Range(1, 12).Draw(t, "most")
		s := New(clock.time, most, 1e6)
		windows := make(map[string]window)
		const limit = 2
		t.Repeat(map[string]func(*rapid.T){
			"":      func(t *rapid.T) { requireWhole(t, s) },
			"later": func(t *rapid.T) { clock.now += rapid.Int64Range(1, 20).Draw(t, "by") },
			"call": func(t *rapid.T) {
				maps.DeleteFunc(windows, func(_ string, w window) bool { return w.stop <= clock.now })
				per := rapid.SampledFrom([]int64{5, 50}).Draw(t, "per")
				call := callOf(fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "subject")), limit, ruleOf(engine.FixedWindow, per))
				call.Claims[0].Rule.Tag = fmt.Sprint(per)
				name := fmt.Sprint(per, call.Claims[0].Subject)
				w, found := windows[name]
				if !found {
					w.stop = clock.now + per
				}
				v, err := s.Decide(t.Context(), call)
				switch {
				case err != nil:
					if found || len(windows) < int(most) {
						t.Fatalf("%s: error %v with %d live windows of %d", name, err, len(windows), most)
					}
				case v.Admitted != (w.used < limit):
					t.Fatalf("%s: admitted is %t after %d of %d", name, v.Admitted, w.used, limit)
				case v.Admitted:
					w.used++
					windows[name] = w
				}
			},
		})
	})
}

func TestFullStoreChargesNothing(t *testing.T) {
	s := New((&hand{now: 1}).time, 2, 1e6)
	old, other := ruleOf(engine.FixedWindow, 100), ruleOf(engine.FixedWindow, 100)
	other.Name = "other"
	expect(t, s, callOf("a", 2, old), true)
	expect(t, s, callOf("b", 2, old), true)
	expectFull(t, s, callOf("a", 2, old, other)) // the first rule has a count, the second is new
	expectKeys(t, s, 2)
	expect(t, s, callOf("a", 2, old), true)
	expect(t, s, callOf("a", 2, old, other), false) // refused by the first rule
	expectKeys(t, s, 2)
}

func TestFullStoreSettles(t *testing.T) {
	clock := &hand{now: 1}
	s := New(clock.time, 1, 1e6)
	rule := ruleOf(engine.FixedWindow, 100)
	call := callOf("a", 5, rule)
	expect(t, s, call, true)
	clock.now = 200
	expect(t, s, callOf("b", 5, rule), true)
	call.Claims[0].Delta = 2
	if err := s.Adjust(t.Context(), call); !errors.Is(err, ErrFull) || call.Claims[0].Delta != 2 {
		t.Errorf("settling what has no place: error %v, %+v", err, call.Claims[0])
	}
	call.Claims[0].Delta = -1
	if err := s.Adjust(t.Context(), call); err != nil || call.Claims[0].Delta != 0 {
		t.Errorf("refunding what is gone: error %v, %+v", err, call.Claims[0])
	}
	expectKeys(t, s, 1)
}

func TestWhatKeepsNothing(t *testing.T) {
	rule, late := ruleOf(engine.SlidingWindow, 100), ruleOf(engine.SlidingWindow, 100)
	late.Name = "late"
	peek, refused := callOf("b", 1, rule), callOf("b", 1, rule)
	peek.Peek, refused.Refused = true, true
	s := New((&hand{now: 1}).time, 100, 1e6)
	expect(t, s, callOf("a", 1, rule), true)
	expect(t, s, peek, true)
	expect(t, s, refused, false)
	expect(t, s, callOf("a", 1, rule, late), false)
	if n, err := s.Reset(t.Context(), callOf("c", 1, rule, late)); n != 0 || err != nil {
		t.Errorf("a reset of nothing forgets %d, error %v", n, err)
	}
	expectKeys(t, s, 1)
}

// A charge after the clock was set back belongs to the open window, and is rolled back from it.
func TestWindowAfterTheClockWentBack(t *testing.T) {
	clock := &hand{now: 1000}
	s := New(clock.time, 10, 1e6)
	rule := ruleOf(engine.FixedWindow, 100)
	expect(t, s, callOf("a", 2, rule), true)
	clock.now = 990
	call := callOf("a", 2, rule)
	expect(t, s, call, true)
	expect(t, s, callOf("a", 2, rule), false)
	call.Claims[0].Delta = -1
	if err := s.Adjust(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	expect(t, s, callOf("a", 2, rule), true)
}

// A block is kept even after the window has ended in which it began.
func TestBlockKeepsItsPlace(t *testing.T) {
	clock := &hand{now: 1}
	s := New(clock.time, 1, 1e6)
	rule, other := ruleOf(engine.FixedWindow, 10), ruleOf(engine.FixedWindow, 10)
	rule.Block, other.Block, other.Name = 1000, 1000, "other"
	expect(t, s, callOf("a", 1, rule), true)
	expect(t, s, callOf("a", 1, rule), false)
	clock.now = 500 // the window is over, the block is not
	expect(t, s, callOf("a", 1, rule), false)
	expectFull(t, s, callOf("b", 1, rule))
	expect(t, s, callOf("a", 1, rule, other), false) // the other rule is new, but keeps no count
	clock.now = 1001
	expect(t, s, callOf("a", 1, rule), true)
}

// Blocks of different subjects are separate, even if the subjects are in one shard and call one after the other.
func TestBlocksAreApart(t *testing.T) {
	const subjects = 1000
	clock := &hand{now: hour}
	s, rule := New(clock.time, subjects, 1e6), ruleOf(engine.FixedWindow, hour)
	rule.Block = hour
	for i := range subjects {
		expect(t, s, callOf(fmt.Sprint(i), 1, rule), true)
		expect(t, s, callOf(fmt.Sprint(i), 1, rule), false) // begins the block
		clock.now++
	}
	for range 2 {
		for i := range subjects {
			call := callOf(fmt.Sprint(i), 1, rule)
			if expect(t, s, call, false); call.Claims[0].Earliest != 2*hour+int64(i) {
				t.Fatalf("%d is blocked until %d, want %d", i, call.Claims[0].Earliest, 2*hour+int64(i))
			}
		}
	}
}

// A state whose whole charge was given back is removed at once.
func TestReturnedStateMakesRoom(t *testing.T) {
	s := New((&hand{now: hour}).time, 1, 1e6)
	for _, kind := range []engine.Kind{engine.SlidingWindow, engine.TokenBucket, engine.Distinct} {
		call := callOf("a", 1, ruleOf(kind, 100))
		expect(t, s, call, true)
		call.Claims[0].Delta = -1
		if err := s.Adjust(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		expectKeys(t, s, 0)
	}
}

// However many goroutines add states at the same time, the store never exceeds its bound, and can be filled up to it.
func TestBoundHoldsForConcurrentCalls(t *testing.T) {
	const goroutines, each, most = 8, 200, 300
	s := New((&hand{now: 1}).time, most, 1e6)
	rule := ruleOf(engine.SlidingWindow, 100)
	admitted := make([]int, goroutines)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for i := range each {
				if v, err := s.Decide(t.Context(), callOf(fmt.Sprint(g, ".", i), 1, rule)); err == nil && v.Admitted {
					admitted[g]++
				} else if !errors.Is(err, ErrFull) {
					t.Errorf("%+v, error %v; expected %v", v, err, ErrFull)
				}
			}
		})
	}
	running.Wait()
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	if sum != most {
		t.Errorf("%d were admitted; expected %d", sum, most)
	}
	expectKeys(t, s, most)
}

// Keys that differ in any one part have separate counts, even if all hashes are equal.
func TestNamesAreApart(t *testing.T) {
	base := engine.Rule{Name: "a", Tag: "v", Kind: engine.FixedWindow, Per: 100}
	rules := []engine.Rule{base, base, base, base}
	rules[1].Name, rules[2].Tag, rules[3].Kind = "b", "w", engine.SlidingWindow
	s := New((&hand{now: 1}).time, 100, 1e6)
	n := int64(0)
	for _, store := range []*Store{s, s.Local(false).(*Store)} {
		for _, prefix := range []string{"p", "q"} {
			for i := range rules {
				for _, subject := range []string{"", "x", "y"} {
					for _, admitted := range []bool{true, false} {
						call := callOf(subject, 1, &rules[i])
						call.Prefix = prefix
						expect(t, store, call, admitted)
					}
					n++
					expectKeys(t, s, n)
				}
			}
		}
	}
}

// Entries are found and removed in any order, however their hashes collide.
func TestChains(t *testing.T) {
	rule := ruleOf(engine.TokenBucket, hour)
	rapid.Check(t, func(t *rapid.T) {
		var s shard
		s.chain(fewestHeads)
		type key struct {
			claim engine.Claim
			hash  uint32
		}
		var in, out []key
		added := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i := range in {
					e, n := s.find(nil, "", &in[i].claim, in[i].hash)
					if e == nil || e != s.at(n) || e.subject != in[i].claim.Subject || e.cell != engine.NewCell(rule) {
						t.Fatalf("%+v is found as %+v, entry %d", in[i], e, n)
					}
				}
				for i := range out {
					if e, _ := s.find(nil, "", &out[i].claim, out[i].hash); e != nil {
						t.Fatalf("%+v is found as %+v", out[i], e)
					}
				}
				if s.count != len(in) || s.count > len(s.heads) || 8*s.count < len(s.heads)/2 && len(s.heads) > fewestHeads {
					t.Fatalf("%d entries, expected %d, are in %d chains", s.count, len(in), len(s.heads))
				}
			},
			"add": func(t *rapid.T) {
				k := key{claim: engine.Claim{Ask: engine.Ask{Rule: rule, Subject: fmt.Sprint(added)}}}
				k.hash = uint32(rapid.SampledFrom([]int{0, 1, 7, 8, 15, 1 << 30}).Draw(t, "hash"))
				s.add(nil, "", &k.claim, k.hash, engine.NewCell(rule))
				in, added = append(in, k), added+1
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					return
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "entry")
				_, n := s.find(nil, "", &in[i].claim, in[i].hash)
				s.remove(n)
				out = append(out, in[i])
				in = slices.Delete(in, i, i+1)
			},
		})
	})
}

// A count that has expired is not found by a reset, whether it is still kept or not.
func TestResetOfWhatHasExpired(t *testing.T) {
	for later, want := range map[int64]int{99: 1, 100: 0, 101: 0} {
		clock := &hand{now: hour}
		s := New(clock.time, 9, 1e6)
		call := callOf("a", 1, ruleOf(engine.FixedWindow, 100))
		expect(t, s, call, true)
		clock.now += later
		if found, err := s.Reset(t.Context(), call); found != want || err != nil {
			t.Errorf("after %d microseconds of 100: found %d counts, error %v; expected %d", later, found, err, want)
		}
		expectKeys(t, s, 0)
	}
}

// A store made by Local shares the clock and the bounds of the given store, but not its counts.
func TestLocal(t *testing.T) {
	clock := &hand{now: 1234}
	s := New(clock.time, 2, 1e6)
	rule := ruleOf(engine.SlidingWindow, 100)
	expect(t, s, callOf("a", 1, rule), true)
	like := s.Local(false).(*Store)
	if v := expect(t, like, callOf("a", 1, rule), true); v.Now != clock.now {
		t.Errorf("its time is %d; expected %d", v.Now, clock.now)
	}
	expectFull(t, like, callOf("b", 1, rule))
	expectFull(t, s, callOf("b", 1, rule))
	expectKeys(t, s, 2)
}

// A decision about a subject that has no count needs no memory if it leaves none.
func TestNothingIsAllocatedForUnknownSubjects(t *testing.T) {
	s := New(nil, 10, 1<<20)
	for _, kind := range []engine.Kind{engine.FixedWindow, engine.TokenBucket} {
		call := callOf("unknown", 3, ruleOf(kind, hour))
		call.Peek = true
		if n := testing.AllocsPerRun(100, func() { _, _ = s.Decide(t.Context(), call) }); n > 0 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}
