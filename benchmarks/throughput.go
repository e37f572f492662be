package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

const many = 64 // callers at once

// load is a series of calls through the loopback interface. All are admitted. Client and server share the machine's cores.
type load struct {
	title             string
	callers, subjects int
	cases             []loadCase
}

type loadCase struct {
	name   string
	decide decide
}

// spending is the result of a load.
type spending struct {
	rate float64 // decisions a second
	wall float64 // microseconds that a caller waited for a decision
	cpu  float64 // processor time of the server for a decision, in microseconds
}

func loads(pool, piped redis.UniversalClient) []load {
	second, day := sliding(1000, time.Second), yearly(1e15)
	hot := bucket(plenty, time.Second)
	each := []loadCase{
		{"redis_rate, one rule", redisRate(pool, gcra(plenty))},
		{"redis_rate, one rule, AutoPipeline", redisRate(piped, gcra(plenty))},
		{"ours: sliding-window and calendar", ours(oursOn(pool), second, day)},
		{"ours: the same, with a report", reported(oursOn(pool), second, day)},
		{"ours: the same, AutoPipeline", ours(oursOn(piped), second, day)},
		{"ours: token-bucket", ours(oursOn(pool), hot)},
	}
	one := []loadCase{
		each[0], each[1],
		{"ours: token-bucket and calendar", ours(oursOn(pool), hot, day)},
		{"ours: the same, with a report", reported(oursOn(pool), hot, day)},
	}
	return []load{
		{"One caller", 1, 512, each},
		{fmt.Sprintf("%d callers, 512 subjects", many), many, 512, each},
		{fmt.Sprintf("%d callers, one subject", many), many, 1, one},
	}
}

// reported is like ours, but with a report in the context of each call.
func reported(limiter *ratelimit.Limiter, rules ...ratelimit.Rule) decide {
	prepared := wrap.NewRules("sms.Sender.SendCode", rules...)
	limits := prepared.On(limiter)
	return func(subject string) (bool, error) {
		ctx, report := ratelimit.WithReport(ctx)
		allowed, err := admitted(wrap.Take(ctx, limits, prepared, slices.Repeat([]string{subject}, len(rules))...))
		if n := len(report.Quotas()); err == nil && n != len(rules) {
			err = fmt.Errorf("the report has %d quotas; expected %d", n, len(rules))
		}
		return allowed, err
	}
}

func measureThroughput(server *redisServer, e effort) ([]table, error) {
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many})
	defer pool.Close()
	piped, err := pool.AutoPipeline()
	if err != nil {
		return nil, err
	}
	var tables []table
	for _, l := range loads(pool, piped) {
		t, err := l.measure(server, e)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// measure compares the cases with the first one.
func (l load) measure(server *redisServer, e effort) (table, error) {
	t := table{title: l.title + ", over the loopback interface", header: []string{
		"against redis_rate", "decisions a second", "", "us a caller waits", "", "server CPU us each", "",
	}}
	best, err := l.best(server, e)
	if err != nil {
		return t, err
	}
	first := best[0]
	for i, s := range best {
		t.add(l.cases[i].name, number(s.rate), ratio(s.rate, first.rate), number(s.wall), ratio(s.wall, first.wall),
			number(s.cpu), ratio(s.cpu, first.cpu))
	}
	return t, server.flush()
}

// best runs the cases in turns, and keeps the best of each figure. The order of the cases differs from round to round, so that none always
// follows the same one. One caller and the server never work at the same time, so they share one processor. On two, the time to wake the other
// side would be longer than what the cases differ by, and differ from turn to turn.
func (l load) best(server *redisServer, e effort) ([]spending, error) {
	best := slices.Repeat([]spending{{0, math.Inf(1), math.Inf(1)}}, len(l.cases))
	turns := func() error {
		for range e.turns {
			for _, i := range rand.Perm(len(l.cases)) {
				s, err := l.run(server, l.cases[i].decide, e.turn)
				if err != nil {
					return fmt.Errorf("%s: %w", l.cases[i].name, err)
				}
				best[i] = spending{max(best[i].rate, s.rate), min(best[i].wall, s.wall), min(best[i].cpu, s.cpu)}
			}
		}
		return nil
	}
	if l.callers == 1 {
		return best, server.onOneCore(turns)
	}
	return best, turns()
}

// run makes calls for the time span.
func (l load) run(server *redisServer, d decide, span time.Duration) (spending, error) {
	names := make([]string, l.subjects)
	for i := range names {
		names[i] = newSubject()
	}
	before, err := server.spent()
	if err != nil {
		return spending{}, err
	}
	var calls atomic.Int64
	start := time.Now()
	callers, ctx := errgroup.WithContext(ctx)
	for caller := range l.callers {
		callers.Go(func() error {
			for i := caller * len(names) / l.callers; time.Since(start) < span && ctx.Err() == nil; i++ {
				if allowed, err := d(names[i%len(names)]); err != nil || !allowed {
					return fmt.Errorf("admitted is %t, error %w", allowed, err)
				}
				calls.Add(1)
			}
			return nil
		})
	}
	if err := callers.Wait(); err != nil {
		return spending{}, err
	}
	seconds := time.Since(start).Seconds()
	after, err := server.spent()
	n := float64(calls.Load())
	return spending{n / seconds, 1e6 * seconds * float64(l.callers) / n, (after.CPU - before.CPU) / n}, err
}
