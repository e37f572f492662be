package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// A limiter decides any number of different rules, but keeps a bounded number of them.
func TestRulesOfRequestsAreBounded(t *testing.T) {
	l := New(memory.New(nil, memory.MaxKeys, memory.MaxBytes))
	for i := range cachedRules + 1000 {
		for _, want := range []bool{true, false} {
			d, err := l.Allow(t.Context(), Request{Rule: Rule{Name: fmt.Sprint("r", i), Limit: 1, Per: time.Hour}})
			if err != nil || d.Allowed != want {
				t.Fatalf("rule %d: got %+v, error %v; want %v", i, d, err, want)
			}
		}
	}
	if n := len(l.requested.rules); n != cachedRules {
		t.Errorf("%d rules are kept, want %d", n, cachedRules)
	}
}
