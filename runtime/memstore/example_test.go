package memstore_test

import (
	"context"
	"fmt"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

func ExampleNew() {
	limiter := ratelimit.New(memstore.New(memstore.WithMaxKeys(100_000)))
	rule := ratelimit.Rule{Name: "login", Limit: 1, Per: time.Minute}
	for _, user := range []string{"ann", "ann", "bob"} {
		decision, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: user})
		fmt.Println(user, decision.Allowed, err)
	}
	// Output:
	// ann true <nil>
	// ann false <nil>
	// bob true <nil>
}
