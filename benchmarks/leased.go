package main

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// leasedRate is the number of calls per second for a subject with a lease.
const leasedRate = 100_000

// measureLeased measures one subject, with and without a lease, at 100,000 calls a second or as many as possible.
func measureLeased(server *redisServer, e effort) ([]table, error) {
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many})
	defer pool.Close()
	t := table{
		title:  fmt.Sprintf("One subject at up to %s calls a second", grouped(leasedRate)),
		header: []string{"one caller", "calls a second", "scripts a call", "ns a call"},
	}
	for _, lease := range []time.Duration{0, 200 * time.Millisecond} {
		second, day := bucket(plenty, time.Second), yearly(1e15)
		second.Lease, day.Lease = lease, lease
		for _, c := range []struct {
			name  string
			rules []ratelimit.Rule
		}{
			{"token-bucket", []ratelimit.Rule{second}},
			{"token-bucket and calendar", []ratelimit.Rule{second, day}},
		} {
			d := ours(oursOn(pool), c.rules...)
			if lease > 0 {
				c.name += fmt.Sprintf(", lease=%v", lease)
			}
			row, err := steadily(server, d, e.load)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			t.add(append([]string{c.name}, row...)...)
		}
	}
	return []table{t}, server.flush()
}

// steadily makes calls for one subject, a batch each millisecond. It does not measure the first second, in which leases grow.
func steadily(server *redisServer, d decide, span time.Duration) ([]string, error) {
	subject := newSubject()
	calls := func(span time.Duration) (n int, in time.Duration, err error) {
		start := time.Now()
		for time.Since(start) < span {
			for due := int(time.Since(start).Seconds() * leasedRate); n < due; {
				batch := time.Now()
				for last := min(due, n+leasedRate/1000); n < last; n++ {
					if allowed, err := d(subject); err != nil || !allowed {
						return n, in, fmt.Errorf("call %d: admitted is %t, error %w", n, allowed, err)
					}
				}
				in += time.Since(batch)
				if time.Since(start) >= span {
					break
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
		return n, in, nil
	}
	if _, _, err := calls(span); err != nil {
		return nil, err
	}
	before, err := server.spent()
	if err != nil {
		return nil, err
	}
	n, in, err := calls(span)
	if err != nil {
		return nil, err
	}
	after, err := server.spent()
	return []string{
		number(float64(n) / span.Seconds()), fmt.Sprintf("%.5f", (after.Scripts-before.Scripts)/float64(n)),
		number(float64(in.Nanoseconds()) / float64(n)),
	}, err
}
