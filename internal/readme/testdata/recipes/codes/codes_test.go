package codes

import (
	"context"
	"fmt"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

type gateway struct{}

func (gateway) Send(context.Context, string) error           { return nil }
func (gateway) Verify(context.Context, string, string) error { return ErrWrong }

func TestFewNumbersAndFewGuesses(t *testing.T) {
	limiter, clock := limittest.New(t)
	limited, ctx := NewLimitedCodes(gateway{}, limiter), ratelimit.WithClientIP(t.Context(), "192.0.2.1")
	for n := range 5 {
		limittest.RequireAllowed(t, limited.Send(ctx, fmt.Sprint("+1555010", n)))
		_ = limited.Verify(ctx, "+15550100", "000000")
	}
	limittest.RequireRefused(t, limited.Send(ctx, "+15550105"), "codes-client")
	clock.Advance(time.Minute)
	limittest.RequireAllowed(t, limited.Send(ctx, "+15550100")) // a number that counts already
	limittest.RequireRefused(t, limited.Verify(ctx, "+15550100", "000000"), "code-guesses")
}
