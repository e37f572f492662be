package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
	"unique"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

var ctx = context.Background()

// hand is a clock that is moved by hand, in microseconds.
type hand struct{ now int64 }

func (h *hand) time() time.Time { return time.UnixMicro(h.now) }

// newRule returns a rule whose windows are per long.
func newRule(kind decide.Kind, name string, per int64) *decide.Rule {
	rule := &decide.Rule{Kind: kind, Per: per}
	rule.Identify(name, "w")
	return rule
}

// ask returns a call of the rules, for one permit of limit each.
func ask(subject string, limit int64, rules ...*decide.Rule) *decide.Call {
	call := &decide.Call{Prefix: unique.Make("p")}
	for _, rule := range rules {
		call.Claims = append(call.Claims, decide.Claim{Rule: rule, Subject: subject, Cost: 1, Limit: limit, Burst: limit})
	}
	return call
}

// expect decides a call and checks whether it is admitted.
func expect(t *testing.T, s *Store, call *decide.Call, admitted bool) decide.Verdict {
	t.Helper()
	v, err := s.Decide(ctx, call)
	if err != nil || v.Admitted != admitted {
		t.Fatalf("%s: admitted is %t, error %v; expected %t", call.Claims[0].Subject, v.Admitted, err, admitted)
	}
	return v
}

func expectFull(t *testing.T, s *Store, call *decide.Call) {
	t.Helper()
	if v, err := s.Decide(ctx, call); !errors.Is(err, ErrFull) {
		t.Fatalf("%s: %+v, error %v; expected %v", call.Claims[0].Subject, v, err, ErrFull)
	}
}

func expectCount(t *testing.T, s *Store, want int64) {
	t.Helper()
	if got := s.count.Load(); got != want {
		t.Fatalf("count is %d; expected %d", got, want)
	}
	if problem := broken(s); problem != "" {
		t.Fatal(problem)
	}
}

func TestFullStoreChargesNothing(t *testing.T) {
	clock := &hand{}
	s := New(clock.time, 2)
	old, other := newRule(decide.Fixed, "old", 100), newRule(decide.Fixed, "other", 100)
	expect(t, s, ask("a", 2, old), true)
	expect(t, s, ask("b", 2, old), true)
	expectFull(t, s, ask("a", 2, old, other)) // the first has a place, the second has none
	expectCount(t, s, 2)
	expect(t, s, ask("a", 2, old), true)
	expect(t, s, ask("a", 2, old), false)
}

func TestWhatTakesNoPlace(t *testing.T) {
	rule, late := newRule(decide.Log, "r", 100), newRule(decide.Log, "late", 100)
	peek, refused := ask("b", 1, rule), ask("b", 1, rule)
	peek.Peek, refused.Refused = true, true
	both := ask("a", 1, rule, late) // the first is used up
	s := New((&hand{}).time, 100)
	expect(t, s, ask("a", 1, rule), true)
	expect(t, s, peek, true)
	expect(t, s, refused, false)
	expect(t, s, both, false)
	expectCount(t, s, 1)
}

func TestFullStoreDropsWhatHasExpired(t *testing.T) {
	clock := &hand{}
	const most = 1000
	s := New(clock.time, most)
	short, long := newRule(decide.Fixed, "short", 100), newRule(decide.Fixed, "long", 1000)
	for i := range most {
		rule := short
		if i%2 == 0 {
			rule = long
		}
		expect(t, s, ask(fmt.Sprint(i), 1, rule), true)
	}
	clock.now = 99
	expectFull(t, s, ask("new", 1, short))
	expectCount(t, s, most)
	clock.now = 100
	for i := range most / 2 {
		expect(t, s, ask(fmt.Sprint("new", i), 1, long), true)
		expectCount(t, s, int64(most/2+i+1)) // the first one made room for all
	}
	expectFull(t, s, ask("new", 1, short))
	expectCount(t, s, most)
	for i := 0; i < most; i += 2 {
		expect(t, s, ask(fmt.Sprint(i), 1, long), false)
	}
}

// Each call drops more than it adds, so a store that is never full does not grow with the subjects there have been.
func TestExpiredStateIsDroppedAsCallsComeIn(t *testing.T) {
	clock := &hand{}
	const live = 1000 // at a time
	s := New(clock.time, 1_000_000)
	rule := newRule(decide.Log, "r", live)
	for i := range 50 * live {
		expect(t, s, ask(fmt.Sprint(i), 1, rule), true)
		if n := s.count.Load(); n > 2*live {
			t.Fatalf("count is %d after %d calls; expected at most %d", n, i+1, 2*live)
		}
		clock.now++
	}
	if problem := broken(s); problem != "" {
		t.Fatal(problem)
	}
}

// A subject that comes back in the instant in which its state expires goes on with that.
func TestExpiredStateIsRevivedByItsOwnCall(t *testing.T) {
	for _, kind := range []decide.Kind{decide.Log, decide.Fixed, decide.Bucket, decide.Counter, decide.Members} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			clock := &hand{now: 1_000_000}
			s := New(clock.time, 1)
			rule := newRule(kind, "r", 100)
			rule.Slices = 10
			call := ask("a", 1, rule)
			call.Claims[0].Member = "m"
			expect(t, s, call, true)
			first := s.place(call).entry
			for range 5 {
				clock.now = first.state.Expiry(rule)
				expect(t, s, call, true)
				if got := s.place(call).entry; got != first {
					t.Fatalf("the entry is %p; expected %p as before", got, first)
				}
				expectCount(t, s, 1)
			}
		})
	}
}

// place returns where the state of a call's first claim is.
func (s *Store) place(call *decide.Call) place {
	places, locked := s.lock(call, nil)
	defer s.unlock(locked)
	places[0].find(call.Prefix, &call.Claims[0])
	return places[0]
}

// State that a call prolonged is due again later, not when it was first to expire.
func TestProlongedStateIsKept(t *testing.T) {
	clock := &hand{}
	s := New(clock.time, 1)
	rule := newRule(decide.Log, "r", 100)
	expect(t, s, ask("a", 2, rule), true)
	clock.now = 99
	expect(t, s, ask("a", 2, rule), true)
	clock.now = 198
	expectFull(t, s, ask("b", 2, rule))
	expect(t, s, ask("a", 2, rule), true)
	expect(t, s, ask("a", 2, rule), false)
	clock.now = 298
	expect(t, s, ask("b", 2, rule), true)
	expectCount(t, s, 1)
}

func TestReset(t *testing.T) {
	s := New((&hand{}).time, 2)
	a, b := newRule(decide.Log, "a", 100), newRule(decide.Bucket, "b", 100)
	expect(t, s, ask("x", 1, a, b), true)
	expectFull(t, s, ask("y", 1, a))
	for range 2 { // what is not there can be forgotten too
		if _, err := s.Reset(ctx, ask("x", 1, a, b)); err != nil {
			t.Fatal(err)
		}
		expectCount(t, s, 0)
	}
	expect(t, s, ask("x", 1, a, b), true)
}

func TestReturn(t *testing.T) {
	clock := &hand{}
	s := New(clock.time, 10)
	rule := newRule(decide.Log, "r", 100)
	call := ask("a", 1, rule)
	expect(t, s, call, true)
	uncharged := ask("a", 1, rule)
	for _, c := range []struct {
		call     *decide.Call
		admitted bool // the next one
	}{{uncharged, false}, {call, true}, {call, true}} {
		if err := s.Return(ctx, c.call); err != nil {
			t.Fatal(err)
		}
		peek := ask("a", 1, rule)
		peek.Peek = true
		expect(t, s, peek, c.admitted)
	}
	clock.now = 1000
	if _, err := s.Reset(ctx, call); err != nil {
		t.Fatal(err)
	}
	if err := s.Return(ctx, call); err != nil { // its state is gone
		t.Fatal(err)
	}
	expectCount(t, s, 0)
}

func TestBlockTakesAPlace(t *testing.T) {
	clock := &hand{}
	block, rule := newRule(decide.Block, "b", 1000), newRule(decide.Fixed, "r", 10)
	blocked := func() *decide.Call { return ask("a", 1, block, rule) }

	s := New(clock.time, 2)
	expect(t, s, blocked(), true)
	expectCount(t, s, 1)
	expect(t, s, blocked(), false)
	expectCount(t, s, 2)
	clock.now = 999 // the window is over, the block is not
	expect(t, s, blocked(), false)
	clock.now = 1000
	expect(t, s, blocked(), true)

	s = New(clock.time, 1)
	expect(t, s, blocked(), true)
	expectFull(t, s, blocked())
	expectCount(t, s, 1)
}

func TestPrefixesRulesAndSubjectsAreApart(t *testing.T) {
	s := New((&hand{}).time, 100)
	rules := []*decide.Rule{newRule(decide.Log, "a", 100), newRule(decide.Log, "b", 100)}
	rules[1].Hash = rules[0].Hash // as may happen
	for range 2 {
		admitted := s.count.Load() == 0
		for _, prefix := range []string{"p", "q"} {
			for _, rule := range rules {
				for _, subject := range []string{"", "x", "y"} {
					call := ask(subject, 1, rule)
					call.Prefix = unique.Make(prefix)
					expect(t, s, call, admitted || s.place(call).entry == nil)
				}
			}
		}
		expectCount(t, s, 12)
	}
}

// However many goroutines add at once, the bound holds, and no place is lost.
func TestBoundHoldsForConcurrentCalls(t *testing.T) {
	const goroutines, each, most = 8, 200, 300
	s := New((&hand{}).time, most)
	rule := newRule(decide.Log, "r", 100)
	admitted := make([]int, goroutines)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for i := range each {
				if v, err := s.Decide(ctx, ask(fmt.Sprint(g, ".", i), 1, rule)); err == nil && v.Admitted {
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
	expectCount(t, s, most)
}

// Calls of the same subjects in any order, and of one subject twice, do not wait for each other.
func TestCallsOfSeveralSubjectsDoNotLockEachOtherOut(t *testing.T) {
	const goroutines, each, subjects = 8, 2000, 5
	s := New(nil, 1000)
	rule, other := newRule(decide.Fixed, "r", 1e12), newRule(decide.Fixed, "s", 1e12)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for i := range each {
				call := ask(fmt.Sprint(i%subjects), 1e9, rule, other)
				call.Claims[1].Subject = fmt.Sprint((i*g + g) % subjects)
				if v, err := s.Decide(ctx, call); err != nil || !v.Admitted {
					t.Errorf("%+v, error %v", v, err)
				}
			}
		})
	}
	running.Wait()
	used := int64(0)
	for i := range subjects {
		call := ask(fmt.Sprint(i), 1e9, rule)
		call.Claims[0].Cost = 1e9
		call.Peek = true
		expect(t, s, call, false)
		used += 1e9 - call.Claims[0].Room
	}
	if want := int64(goroutines * each); used != want {
		t.Errorf("%d permits are used; expected %d", used, want)
	}
}
