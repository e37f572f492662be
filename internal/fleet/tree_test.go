package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A tree has what a map has, whatever is put in and taken out, also if all keys have one of few hashes. Trees of before do not change.
func TestTreeLikeMap(t *testing.T) {
	for _, hashes := range []uint64{1, 2, 1 << 62} {
		random := rand.New(rand.NewPCG(hashes, 2))
		hashOf := map[string]uint64{}
		var tr *tree[*Setting]
		model := map[string]*Setting{}
		for range 3000 {
			before, had := tr, maps.Clone(model)
			key := fmt.Sprint(random.IntN(60))
			if _, ok := hashOf[key]; !ok {
				hashOf[key] = random.Uint64N(hashes)
			}
			hash, s := hashOf[key], &Setting{Values: Values{Until: time.UnixMilli(random.Int64N(100))}}
			if random.IntN(2) == 0 {
				s = nil
			}
			if delete(model, key); s != nil {
				model[key] = s
			}
			if tr.find(hash, key) != s {
				tr = tr.put(hash, hash, key, s)
			}
			for _, now := range []struct {
				tree *tree[*Setting]
				want map[string]*Setting
			}{{before, had}, {tr, model}} {
				for key, hash := range hashOf {
					if now.tree.find(hash, key) != now.want[key] {
						t.Fatalf("%d hashes: key %s has another value", hashes, key)
					}
				}
				at := random.Int64N(100)
				want := nothing
				ending := 0
				for _, s := range now.want {
					want = want.and(s.total())
					if s.Until.UnixMilli() <= at {
						ending++
					}
				}
				if got := now.tree.total(); got != want {
					t.Fatalf("%d hashes: the sum is %+v, want %+v", hashes, got, want)
				}
				if n := len(slices.Collect(now.tree.endingBy(at))); n != ending {
					t.Fatalf("%d hashes: %d end by %d, want %d", hashes, n, at, ending)
				}
			}
		}
	}
}

// What is in force for a rule is the same pointer until a setting of that rule changes. A setting that is there, or that is cleared where none is,
// changes nothing. An end is a change of its rule alone.
func TestPointersOfOtherRulesStay(t *testing.T) {
	random, now := rand.New(rand.NewPCG(3, 4)), time.Now().Truncate(time.Millisecond)
	f := NewLocal(func() time.Time { return now }, nil)
	pointers := func() map[string]*OfRule {
		all := map[string]*OfRule{}
		for i := range 30 {
			all[fmt.Sprint("r", i)] = f.InForce().Of(fmt.Sprint("r", i))
		}
		return all
	}
	for round := range 3000 { // beyond a sweep
		before, in := pointers(), f.InForce()
		s := &Setting{Kind: Block, Rule: fmt.Sprint("r", random.IntN(30)), Key: fmt.Sprint("k", random.IntN(5)), Cleared: random.IntN(3) == 0}
		s.Until = now.Add(time.Duration(1+random.IntN(1000)) * time.Millisecond)
		old := in.Of(s.Rule).OfKey(s.Key).Block
		if _, err := f.Change(t.Context(), Edit{Settings: []*Setting{s}}); err != nil {
			t.Fatal(err)
		}
		changes := old != nil || !s.Cleared
		if (f.InForce() == in) == changes {
			t.Fatalf("round %d: what is in force has changed: %t", round, !changes)
		}
		for rule, r := range pointers() {
			if (r == before[rule]) == (changes && rule == s.Rule) {
				t.Fatalf("round %d: the settings of %s are others: %t", round, rule, r != before[rule])
			}
		}
		before, now = pointers(), now.Add(time.Duration(random.IntN(3))*time.Millisecond)
		ended := map[string]bool{}
		for s := range f.InForce().All() {
			ended[s.Rule] = ended[s.Rule] || !s.holds(now)
		}
		f.Drop()
		for rule, r := range pointers() {
			if (r == before[rule]) == ended[rule] {
				t.Fatalf("round %d: after an end, the settings of %s are others: %t", round, rule, r != before[rule])
			}
		}
	}
}
