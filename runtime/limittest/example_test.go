package limittest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// The example shows decisions while the store is away, and a minute later.
func ExampleOutage() {
	clock := limittest.NewClock()
	store := limittest.NewOutage(clock)
	limiter := ratelimit.New(store)
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: time.Minute}, Key: "ann"}
	login := func() {
		decision, err := limiter.Allow(context.Background(), request)
		fmt.Println(decision.Allowed, err)
	}

	login()
	store.Begin(errors.New("no route to host"))
	login()
	store.End()
	login()
	clock.Advance(time.Minute)
	login()
	// Output:
	// true <nil>
	// false store: no route to host
	// false <nil>
	// true <nil>
}
