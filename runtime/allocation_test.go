//go:build !race

package ratelimit

import (
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

// A call allocates nothing, whatever is set: what a rule becomes by its overrides is prepared once.
func TestOverrideAllocatesNothing(t *testing.T) {
	l := New(memory.New(nil, 100, 1<<20))
	rule := Rule{Name: "r", Limit: 100_000, Per: time.Hour, Algorithm: FixedWindow}
	rules, err := Prepare("p.T.M", rule)
	if err != nil {
		t.Fatal(err)
	}
	m := methodOn(l, rules)
	for i, set := range []func() error{
		func() error { return nil },
		func() error { return l.Overrides().SetLocal("r", Override{Limit: new(int64(500_000))}) },
		func() error { return l.Overrides().Set(t.Context(), "r", Override{Key: "k", Factor: 2}) },
		func() error { return l.Overrides().Set(t.Context(), "other", Override{Factor: 2}) },
		func() error { return l.Block(t.Context(), time.Hour, Request{Rule: Rule{Name: "r"}, Key: "other"}) },
	} {
		if err := set(); err != nil {
			t.Fatal(err)
		}
		want := []int64{100_000, 500_000, 1_000_000, 1_000_000, 1_000_000}[i]
		if got, err := l.RuleFor(Request{Rule: rule, Key: "k"}); err != nil || got.Limit != want {
			t.Errorf("step %d: limit %d, error %v", i, got.Limit, err)
		}
		call := func() {
			c := m.Open(false)
			c.Add(&decide.Use{Key: "k", Cost: 1})
			if _, err := c.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		call() // the first call after a change makes the plan anew
		if n := testing.AllocsPerRun(1000, call); n > 0 {
			t.Errorf("step %d: %v allocations a call", i, n)
		}
	}
}
