package behaviour_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
	"unique"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// faster does something before each script that asks for the place of another server.
type faster struct{ do func() }

func (*faster) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *faster) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any("from")) {
			f.do()
		}
		return next(ctx, cmd)
	}
}
func (*faster) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A call for which others are faster on every server, again and again, is refused, whatever the policy, and leaves nothing.
func TestContentionOnTwoServersIsARefusal(t *testing.T) {
	servers := redistest.Cluster{redistest.Start(t), redistest.Start(t)}
	options := &redis.RingOptions{Addrs: map[string]string{"a": servers[0].Addr, "b": servers[1].Addr}, ReadTimeout: patience}
	others, ring := redis.NewRing(options), redis.NewRing(options)
	t.Cleanup(func() { _, _ = others.Close(), ring.Close() })
	s := newSpread(t, others, servers)
	var last int64 // place of the others
	ring.AddHook(&faster{func() {
		for _, c := range []decide.Claim{permits("r", s.a, decide.Bucket, 4), permits("r", s.b, decide.Bucket, 4)} {
			c.Rule.Identify("r", "leaky:1h")
			call := &decide.Call{Prefix: unique.Make(ratelimit.DefaultPrefix), Claims: []decide.Claim{c}}
			if v, err := s.stores[0].Decide(context.Background(), call); err != nil || !v.Admitted {
				t.Errorf("got %+v, error %v", v, err)
			} else {
				last = v.At
			}
		}
	}})
	l := ratelimit.New(redisstore.New(ring), ratelimit.WithFailurePolicy(ratelimit.FailOpen))
	rule := ratelimit.Rule{Name: "r", Limit: 4, Per: time.Hour, Algorithm: ratelimit.LeakyBucket}
	requests := []ratelimit.Request{{Rule: rule, Key: s.a}, {Rule: rule, Key: s.b}}
	for range 3 {
		if _, err := l.Allow(context.Background(), requests...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Wait(context.Background(), requests...)
	if e, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || e.RetryAfter <= 0 || len(e.Violations) == 0 {
		t.Errorf("got error %v", err)
	}
	for _, q := range requests {
		next, err := ratelimit.New(s.stores[0]).Peek(context.Background(), q)
		free := next.At.Add(next.RetryAfter)
		if behind := free.Sub(time.UnixMicro(last)).Round(time.Minute); err != nil || behind != 15*time.Minute {
			t.Errorf("%s: the next place is %v behind those of the others; error %v", q.Key, behind, err)
		}
	}
}
