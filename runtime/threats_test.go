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

// Under WithSubjectHash a subject is nowhere to be read, and counts as before. The hash is that of
// printf 5550100 | openssl dgst -sha256 -hmac secret.
func TestSubjectHash(t *testing.T) {
	var shown []string
	limiter := ratelimit.New(memstore.New(), ratelimit.WithSubjectHash([]byte("secret")),
		ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) { shown = append(shown, e.Rules[0].Key) }))
	rule := ratelimit.Rule{Name: "code", Limit: 1, Per: time.Hour}
	for _, phone := range []string{"5550100", "5550100", "5550101"} {
		d, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: phone})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range d.Violations {
			shown = append(shown, v.Key, v.String())
		}
		if want := len(shown) != 4; d.Allowed != want {
			t.Errorf("%s: allowed %t", phone, d.Allowed)
		}
	}
	const want = "0035ca86e170524613964afa066219ac"
	if shown[0] != want || shown[1] != want || shown[4] == want {
		t.Errorf("got %q", shown)
	}
	if all := strings.Join(shown, " "); strings.Contains(all, "555010") {
		t.Errorf("a subject is shown: %s", all)
	}
}
