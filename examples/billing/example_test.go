package billing_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ratelimit-go/ratelimit/examples/billing"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

func Example() {
	var journal bytes.Buffer // of a program: a file
	limiter := ratelimit.New(memstore.New(), ratelimit.WithObserver(billing.NewJournal(&journal, "tokens").Observe))
	tokens := ratelimit.PerMinute(100_000)
	tokens.Name = "tokens"
	for _, cost := range []int64{120, 35} {
		d, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: tokens, Key: "acme", Cost: 1000})
		if err != nil || !d.Allowed {
			fmt.Println(d, err)
			return
		}
		if err := d.Settle(context.Background(), cost); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(billing.Sum(&journal))
	// Output: map[{acme tokens}:155] <nil>
}
