package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// A cost that a caller chooses cannot make the store write a million permits at once.
func TestCostOfASlidingWindowIsBounded(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	rule := ratelimit.Rule{Name: "upload", Limit: 1_000_000, Per: time.Hour}
	for cost, want := range map[int64]bool{10_000: true, 10_001: false, 1_000_000: false} {
		_, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Cost: cost})
		wrong, is := errors.AsType[*ratelimit.RuleError](err)
		switch {
		case want && err != nil:
			t.Errorf("a cost of %d: %v", cost, err)
		case !want && (!is || !strings.Contains(wrong.Reason, "sliding-counter")):
			t.Errorf("a cost of %d: got %v; expected an error that names sliding-counter", cost, err)
		}
	}
}
