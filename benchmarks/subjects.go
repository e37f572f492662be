package main

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// fewer is the ratio between the two numbers of subjects that are measured. It is a power of two, because the server's tables of keys and of
// expiries double in size when they are full. So the tables are equally full with both numbers.
const fewer = 32

// subjectMemory measures how much memory a subject takes after one call: by MEMORY USAGE, and by used_memory, which includes the subject's part of
// the server's tables of keys and of expiries.
func subjectMemory(server *redisServer, all int) (table, error) {
	few := max(1, all/fewer)
	t := table{title: "Memory of a subject on the server after one call: bytes", header: []string{
		"", "MEMORY USAGE of the only one", "mean of " + grouped(int64(all)), "",
		"used_memory for each of " + grouped(int64(few)), "of " + grouped(int64(all)), "", "keys without expiry",
	}}
	for _, c := range subjectCases() {
		var of [3]footprint
		for i, n := range []int{1, few, all} {
			var err error
			if of[i], err = footprintOf(server, n, c.make); err != nil {
				return t, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		one, some, each := of[0], of[1], of[2]
		t.add(c.name, number(one.usage), number(each.usage), ratio(each.usage, one.usage),
			number(some.used), number(each.used), ratio(each.used, some.used), grouped(each.endless))
	}
	return t, server.flush()
}

type subjectCase struct {
	name string
	make func(redis.UniversalClient) (decide, error)
}

func subjectCases() []subjectCase {
	seldom := redis_rate.Limit{Rate: 10, Burst: 10, Period: long} // so that its keys outlive the run
	peer := func(name string, limits ...redis_rate.Limit) subjectCase {
		return subjectCase{name, func(c redis.UniversalClient) (decide, error) { return redisRate(c, limits...), nil }}
	}
	own := func(name string, rules ...ratelimit.Rule) subjectCase {
		return subjectCase{"ours: " + name, func(c redis.UniversalClient) (decide, error) { return ours(oursAsking(c), rules...), nil }}
	}
	return []subjectCase{
		peer("redis_rate, one rule", seldom),
		peer("redis_rate, called twice for two rules", seldom, seldom),
		{"ulule/limiter, one rule", func(c redis.UniversalClient) (decide, error) { return ululeRedis(c, 100, time.Hour) }},
		own("sliding-window", sliding(100, long)),
		own("token-bucket", bucket(10, long)),
		own("leaky-bucket", leaky(10, long)),
		own("fixed-window", fixed(100, long)),
		own("calendar", yearly(100)),
		own("sliding-window and calendar", sliding(100, long), yearly(100)),
		own("sliding-counter", counter(100, 0, long)),
		{"ours: distinct, sliding window", func(c redis.UniversalClient) (decide, error) {
			d := oursCounting(oursAsking(c), distinctSliding(100))
			return func(subject string) (bool, error) { return d(subject, subject) }, nil
		}},
	}
}

// footprint is how much memory a subject takes on a server that has nothing else.
type footprint struct {
	usage   float64 // by MEMORY USAGE, the mean of a sample
	used    float64 // by used_memory
	endless int64   // the number of keys without an expiry
}

func footprintOf(server *redisServer, n int, make func(redis.UniversalClient) (decide, error)) (f footprint, err error) {
	if err := server.flush(); err != nil {
		return f, err
	}
	before, err := server.usedMemory()
	if err != nil {
		return f, err
	}
	if err := callEach(server, n, make); err != nil {
		return f, err
	}
	after, err := server.usedMemory()
	if err != nil {
		return f, err
	}
	f.used = (after - before) / float64(n)
	keys, endless, err := server.keyspace()
	if err != nil {
		return f, err
	}
	f.endless = endless
	sample, _, err := server.client.Scan(ctx, 0, "*", 1000).Result()
	if err != nil {
		return f, err
	}
	bytes, err := usage(server, sample)
	f.usage = float64(bytes) / float64(len(sample)) * float64(keys) / float64(n)
	return f, err
}

// callEach makes one call for each of n new subjects, many at the same time. It closes its connections before it returns, because their buffers
// are part of used_memory.
func callEach(server *redisServer, n int, make func(redis.UniversalClient) (decide, error)) error {
	const name = "subjects"
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many, ClientName: name})
	defer pool.Close()
	piped, err := pool.AutoPipeline()
	if err != nil {
		return err
	}
	d, err := make(piped)
	if err != nil {
		return err
	}
	var calls atomic.Int64
	callers, running := errgroup.WithContext(ctx)
	for range many {
		callers.Go(func() error {
			for calls.Add(1) <= int64(n) && running.Err() == nil {
				if allowed, err := d(newSubject()); err != nil || !allowed {
					return fmt.Errorf("admitted is %t, error %w", allowed, err)
				}
			}
			return nil
		})
	}
	if err := callers.Wait(); err != nil {
		return err
	}
	if err := pool.Close(); err != nil {
		return err
	}
	for range 1000 {
		list, err := server.client.ClientList(ctx).Result()
		if err != nil || !strings.Contains(list, " name="+name+" ") {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the server has not noticed in ten seconds that connections were closed")
}

// keyspace returns the number of keys, and the number of keys without an expiry.
func (s *redisServer) keyspace() (keys, endless int64, err error) {
	info, err := s.info()
	for field := range strings.SplitSeq(info["db0"], ",") {
		switch name, value, _ := strings.Cut(field, "="); name {
		case "keys":
			keys = int64(redisproc.Parse(value))
		case "expires":
			endless = keys - int64(redisproc.Parse(value))
		}
	}
	return keys, endless, err
}
