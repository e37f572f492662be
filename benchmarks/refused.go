package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// measureRefused measures many callers that keep asking for one subject which has no permits left.
func measureRefused(server *redisServer, e effort) ([]table, error) {
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many})
	defer pool.Close()
	rules, limiter := []ratelimit.Rule{sliding(10, long), yearly(1e15)}, oursOn(pool)
	allow := func(subject string) (bool, error) {
		d, err := limiter.Allow(ctx, ratelimit.Request{Rule: rules[0], Key: subject}, ratelimit.Request{Rule: rules[1], Key: subject})
		return d.Allowed, err
	}
	t := table{
		title:  fmt.Sprintf("One subject that is refused, asked for by %d callers", many),
		header: []string{"", "refusals a second", "scripts a second", "ns of one processor each, at most"},
	}
	for _, c := range []loadCase{
		{"redis_rate, one rule", redisRate(pool, gcra(1))},
		{"ours: sliding-window and calendar, by Allow", allow},
		{"ours: the same, with the error of a wrapper", ours(limiter, rules...)},
	} {
		subject := newSubject()
		for allowed := true; allowed; {
			var err error
			if allowed, err = c.decide(subject); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		before, err := server.spent()
		if err != nil {
			return nil, err
		}
		var calls atomic.Int64
		start := time.Now()
		var callers errgroup.Group
		for range many {
			callers.Go(func() error {
				n := int64(0)
				defer func() { calls.Add(n) }()
				for ; n%256 != 0 || time.Since(start) < e.load; n++ {
					if _, err := c.decide(subject); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := callers.Wait(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		seconds := time.Since(start).Seconds()
		after, err := server.spent()
		if err != nil {
			return nil, err
		}
		n := float64(calls.Load())
		t.add(c.name, number(n/seconds), number((after.Scripts-before.Scripts)/seconds), number(1e9*seconds*float64(runtime.GOMAXPROCS(0))/n))
	}
	return []table{t}, server.flush()
}
