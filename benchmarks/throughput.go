package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// measureThroughput makes calls through the loopback interface: client and server share the machine's cores.
func measureThroughput(server *redisServer, e effort) ([]table, error) {
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many})
	defer pool.Close()
	piped, err := pool.AutoPipeline()
	if err != nil {
		return nil, err
	}
	minute, day := sliding(plenty, time.Minute), yearly(1e15)
	t := table{title: "Decisions a second, over the loopback interface", header: []string{
		"", "1 goroutine", "", fmt.Sprint(many, " goroutines"), "", "server CPU us each",
	}}
	var base [2]float64
	for _, c := range []struct {
		name   string
		decide decide
	}{
		{"redis_rate, one rule", redisRate(pool, gcra(plenty))},
		{"redis_rate, one rule, AutoPipeline", redisRate(piped, gcra(plenty))},
		{"ours: sliding-window and calendar", ours(oursOn(pool), minute, day)},
		{"ours: the same, AutoPipeline", ours(oursOn(piped), minute, day)},
		{"ours: token-bucket", ours(oursOn(pool), bucket(plenty, time.Minute))},
		{"ours: the same, AutoPipeline", ours(oursOn(piped), bucket(plenty, time.Minute))},
	} {
		row := []string{c.name}
		var cpu float64
		for i, goroutines := range []int{1, many} {
			var rate float64
			for range e.repeats {
				r, used, err := throughput(server, c.decide, goroutines, e.bench)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				if r > rate {
					rate, cpu = r, used
				}
			}
			if base[i] == 0 {
				base[i] = rate
			}
			row = append(row, number(rate), ratio(rate, base[i]))
		}
		t.add(append(row, number(cpu))...)
	}
	return []table{t}, nil
}

const many = 64 // goroutines

// throughput returns decisions a second, and the server's CPU microseconds for each.
func throughput(server *redisServer, d decide, goroutines int, span time.Duration) (rate, cpu float64, err error) {
	before, err := server.spent()
	if err != nil {
		return 0, 0, err
	}
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	start := time.Now()
	for range goroutines {
		subject := newSubject()
		running.Go(func() {
			for time.Since(start) < span && failed.Load() == nil {
				if _, err := d(subject); err != nil {
					failed.Store(&err)
				}
				calls.Add(1)
			}
		})
	}
	running.Wait()
	seconds := time.Since(start).Seconds()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	after, err := server.spent()
	n := float64(calls.Load())
	return n / seconds, (after.cpu - before.cpu) / n, err
}
