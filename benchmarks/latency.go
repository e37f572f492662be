package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// measureLatency measures how long callers wait for a decision on a server that is not fully loaded: at half of the highest rate of redis_rate.
func measureLatency(server *redisServer, e effort) ([]table, error) {
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many})
	defer pool.Close()
	l := load{callers: many, subjects: 512, cases: []loadCase{
		{"redis_rate, one rule", redisRate(pool, gcra(plenty))},
		{"ours: sliding-window and calendar", ours(oursOn(pool), sliding(1000, time.Second), yearly(1e15))},
	}}
	fastest, err := load{callers: l.callers, subjects: l.subjects, cases: l.cases[:1]}.best(server, e)
	if err != nil {
		return nil, err
	}
	most := fastest[0].rate
	t := table{
		title: fmt.Sprintf("Latency of %d callers at %s decisions a second, half of the most that redis_rate reached: microseconds",
			many, number(most/2)),
		header: []string{"against redis_rate", "p50", "", "p99", ""},
	}
	between := time.Duration(2 * float64(many) / most * float64(time.Second))
	best := make([][2]float64, len(l.cases))
	for i := range best {
		best[i] = [2]float64{math.Inf(1), math.Inf(1)}
	}
	for range e.repeats {
		for i, c := range l.cases {
			took, err := paced(c.decide, between, e.load)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			best[i][0] = min(best[i][0], took[len(took)/2])
			best[i][1] = min(best[i][1], took[len(took)*99/100])
		}
	}
	for i, c := range l.cases {
		t.add(c.name, number(best[i][0]), ratio(best[i][0], best[0][0]), number(best[i][1]), ratio(best[i][1], best[0][1]))
	}
	return []table{t}, server.flush()
}

// paced makes calls for the time span. Each caller starts a call at each of its own ticks. paced returns how long the calls took, in ascending
// order.
func paced(d decide, between, span time.Duration) ([]float64, error) {
	took := make([][]float64, many)
	callers, ctx := errgroup.WithContext(ctx)
	for caller := range many {
		subjects := []string{newSubject(), newSubject(), newSubject(), newSubject(), newSubject(), newSubject(), newSubject(), newSubject()}
		callers.Go(func() error {
			time.Sleep(between * time.Duration(caller) / many)
			tick := time.NewTicker(between)
			defer tick.Stop()
			for end := time.Now().Add(span); time.Now().Before(end) || took[caller] == nil; {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				start := time.Now()
				if allowed, err := d(subjects[len(took[caller])%len(subjects)]); err != nil || !allowed {
					return fmt.Errorf("admitted is %t, error %w", allowed, err)
				}
				took[caller] = append(took[caller], float64(time.Since(start).Nanoseconds())/1000)
			}
			return nil
		})
	}
	err := callers.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, err
}
