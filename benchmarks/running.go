package main

import (
	"fmt"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// pairs is how often a call is admitted and released in a turn.
const pairs = 50

// measureRunning measures calls that run at the same time.
func measureRunning(server *redisServer, e effort) ([]table, error) {
	t := table{
		title:  "Calls that run at the same time",
		note:   "Concurrency takes a permit and gives it back; the fixed window only takes one.",
		header: []string{"", "script microseconds of a call", "bytes of a running call"},
	}
	limiter := oursAsking(server.client)
	for _, n := range []int64{1, 10, 100, 1000} {
		r := rule(ratelimit.Rule{Limit: n, Per: long, Algorithm: ratelimit.Concurrency})
		script, bytes, err := beside(server, limiter, r, n-1, e.rounds)
		if err != nil {
			return nil, err
		}
		t.add(fmt.Sprintf("concurrency, limit %s, all of it in use", grouped(n)), number(script), grouped(bytes/n))
	}
	script, _, err := beside(server, limiter, fixed(plenty, long), 0, e.rounds)
	if err != nil {
		return nil, err
	}
	t.add("fixed-window", number(script), "")
	return []table{t}, server.flush()
}

// beside makes calls while so many others run. It returns the least mean of several turns, and the memory while one of the calls runs.
func beside(server *redisServer, limiter *ratelimit.Limiter, rule ratelimit.Rule, others int64, turns int) (script float64, bytes int64, err error) {
	if err := server.flush(); err != nil {
		return 0, 0, err
	}
	q := ratelimit.Request{Rule: rule, Key: newSubject()}
	admit := func() (ratelimit.Decision, error) {
		d, err := limiter.Allow(ctx, q)
		if err == nil && !d.Allowed {
			err = fmt.Errorf("%s: a call is refused", rule.Algorithm)
		}
		return d, err
	}
	for range others {
		if _, err := admit(); err != nil {
			return 0, 0, err
		}
	}
	for i := range turns {
		mean, err := server.script(pairs, func(int) error {
			d, err := admit()
			if err != nil {
				return err
			}
			return d.Release(ctx)
		})
		if err != nil {
			return 0, 0, err
		}
		if i == 0 || mean < script {
			script = mean
		}
	}
	last, err := admit()
	if err != nil {
		return 0, 0, err
	}
	if bytes, err = keyMemory(server, q.Key); err != nil {
		return 0, 0, err
	}
	return script, bytes, last.Release(ctx)
}
