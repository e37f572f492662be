package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// longestSections measures the longest single command of each case by SLOWLOG, which has the server's own time. Other work on the machine can only
// make a command longer.
func longestSections(server *redisServer, e effort) []section {
	s := section{title: "The longest command, by the server's own time: microseconds", rounds: e.repeat, columns: []column{
		{"longest", least, grouped, false}, {"above 1 ms", least, grouped, false}, {"commands", most, grouped, false},
	}}
	for _, c := range []struct {
		name string
		run  func(*ratelimit.Limiter, effort) error
	}{
		{fmt.Sprintf("sliding-window: %s calls wait, and all give up at once", grouped(float64(e.crowd))), giveUp},
		{"concurrency: 1,000 permits of one key are renewed, per=3s", renewed},
		{"255 rules in one call", manyRules},
		{"sliding-window, limit 10,000 raised to 100,000: one call of 100,000, and its refund", raised},
	} {
		s.cases = append(s.cases, benchmark{c.name, func() ([]float64, error) {
			l := asking(server.pool)
			if err := ours(l, fixed(plenty, long)).expect(true, newSubject()); err != nil { // from here on the server knows the script
				return nil, err
			}
			return server.slowest(func() error { return c.run(l, e) })
		}})
	}
	return []section{s}
}

// slowest returns the longest time of a script while do runs, and how many scripts took more than a millisecond, of how many.
func (s *redisServer) slowest(do func() error) ([]float64, error) {
	for _, command := range [][]any{
		{"flushall"}, {"config", "set", "slowlog-max-len", 100_000}, {"config", "set", "slowlog-log-slower-than", 0}, {"slowlog", "reset"},
	} {
		if err := s.client.Do(ctx, command...).Err(); err != nil {
			return nil, err
		}
	}
	err := do()
	s.client.ConfigSet(ctx, "slowlog-log-slower-than", "-1")
	if err != nil {
		return nil, err
	}
	var longest, long, scripts float64
	commands, err := s.client.SlowLogGet(ctx, -1).Result()
	for _, command := range commands {
		if command.Args[0] != "fcall" {
			continue
		}
		took := float64(command.Duration.Microseconds())
		longest = max(longest, took)
		scripts++
		if took > 1000 {
			long++
		}
	}
	return []float64{longest, long, scripts}, err
}

// giveUp lets calls wait behind a limit that is used up, until they give up together.
func giveUp(l *ratelimit.Limiter, e effort) error {
	q := ratelimit.Request{Rule: sliding(1000, time.Minute), Key: newSubject(), Cost: 1000}
	if _, err := l.Allow(ctx, q); err != nil {
		return err
	}
	q.Cost = 1
	all, cancel := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	for range e.crowd {
		waiters.Go(func() { _, _ = l.Wait(all, q) }) // fails when it is cancelled
	}
	time.Sleep(e.long)
	cancel()
	waiters.Wait()
	time.Sleep(e.long / 10) // until all is given back
	return nil
}

// renewed holds permits of one key until the beat has renewed them a few times.
func renewed(l *ratelimit.Limiter, e effort) error {
	rules := wrap.NewRules("sms.Sender.SendCode", rule(ratelimit.Rule{Limit: 1000, Per: 3 * time.Second, Algorithm: ratelimit.Concurrency}))
	limits, subject := rules.On(l), newSubject()
	var all []*wrap.Taken
	for range 1000 {
		taken, err := wrap.Begin(ctx, limits, rules, wrap.Charge{Key: subject, Cost: 1})
		if err != nil {
			return err
		}
		all = append(all, taken)
	}
	time.Sleep(4 * e.long)
	for _, taken := range all {
		taken.Release(ctx)
	}
	return nil
}

func manyRules(l *ratelimit.Limiter, _ effort) error {
	var requests []ratelimit.Request
	subject := newSubject()
	for i := range 255 {
		r := sliding(100, time.Minute)
		r.Name += strconv.Itoa(i)
		requests = append(requests, ratelimit.Request{Rule: r, Key: subject})
	}
	for range 10 {
		if _, err := l.Allow(ctx, requests...); err != nil {
			return err
		}
	}
	return nil
}

func raised(l *ratelimit.Limiter, _ effort) error {
	r, limit := sliding(10_000, time.Minute), int64(100_000)
	if err := l.Overrides().SetLocal(r.Name, ratelimit.Override{Limit: &limit}); err != nil {
		return err
	}
	d, err := l.Allow(ctx, ratelimit.Request{Rule: r, Key: newSubject(), Cost: limit})
	if err != nil || !d.Allowed {
		return fmt.Errorf("admitted is %t, error %w", d.Allowed, err)
	}
	return d.Refund(ctx)
}
