package behaviour_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// A waiting call that is cancelled is not made, so no trigger is called.
func TestTriggerOfACancelledWaiter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		told := 0
		l := ratelimit.New(s.store, ratelimit.WithTrigger(func(context.Context, ratelimit.Trigger) { told++ }))
		rules := wrap.NewRules("m",
			ratelimit.Rule{Name: "t", Limit: 2, Per: time.Minute, Mode: ratelimit.ModeTrigger},
			ratelimit.Rule{Name: "w", Limit: 1, Per: time.Second, Wait: 5 * time.Second})
		take := func(ctx context.Context) error { return wrap.Take(ctx, rules.On(l), rules, "", "") }
		if err := take(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := take(ctx); !errors.Is(err, context.Canceled) || told != 0 {
			t.Errorf("got error %v, and %d triggers", err, told)
		}
		if err := take(context.Background()); err != nil || told != 1 {
			t.Errorf("then got error %v, and %d triggers", err, told)
		}
	})
}
