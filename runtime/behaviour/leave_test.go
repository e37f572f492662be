package behaviour_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// left are rules of 50 a second whose waiting calls all give up.
var left = []ratelimit.Rule{
	{Name: "sliding-window", Limit: 50, Per: time.Second},
	{Name: "fixed-window", Limit: 50, Per: time.Second, Algorithm: ratelimit.FixedWindow},
	{Name: "token-bucket", Limit: 50, Per: time.Second, Algorithm: ratelimit.TokenBucket},
	{Name: "leaky-bucket", Limit: 50, Per: time.Second, Algorithm: ratelimit.LeakyBucket},
	{Name: "prepaid", Limit: 50, Per: time.Second, Prepay: true, Algorithm: ratelimit.TokenBucket},
}

// 150 calls wait at a limit of 50 a second, and all give up. They leave nothing: once the limit has passed, the next call passes at once, and
// so do 200 calls in the four seconds after, each at its time.
func TestWaitersThatAllGiveUpLeaveNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *subject) {
		for _, rule := range left {
			requireNothingLeft(t, s.limiter, rule)
		}
	})
}

func requireNothingLeft(t *testing.T, l *ratelimit.Limiter, rule ratelimit.Rule) {
	t.Helper()
	q := ratelimit.Request{Rule: rule, Key: "k"}
	ctx, leave := context.WithTimeout(context.Background(), time.Hour)
	defer leave()
	var all sync.WaitGroup
	admitted := make(chan struct{}, 200)
	for range 200 { // those that take what there is, and 150 or more that wait
		all.Go(func() {
			if _, err := l.Wait(ctx, q); err == nil {
				admitted <- struct{}{}
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", rule.Name, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	leave()
	all.Wait()
	t.Logf("%s: %d of 200 calls were admitted before the others gave up", rule.Name, len(admitted))
	time.Sleep(rule.Per + rule.Per/10)
	for i := range 200 {
		d, err := l.Allow(context.Background(), q)
		if err != nil || !d.Allowed {
			t.Fatalf("%s: call %d after all gave up: %+v, error %v", rule.Name, i, d, err)
		}
		time.Sleep(rule.Per / time.Duration(rule.Limit))
	}
}
