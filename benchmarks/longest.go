package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// crowd is a case of measureLongest: many calls on one subject at the same time.
type crowd struct {
	name string
	run  func(*ratelimit.Limiter, effort) error
}

// waiting are rules for which calls wait, and how many permits of each are taken before.
var waiting = []ratelimit.Rule{
	sliding(1000, time.Minute), sliding(1_000_000, time.Minute), fixed(100, time.Minute), rule(ratelimit.Rule{Limit: 100, Cron: "* * * * *"}),
	bucket(1000, time.Minute), leaky(1000, time.Minute),
}

// kindOf names the algorithm and the limit of a rule.
func kindOf(r ratelimit.Rule) string {
	return fmt.Sprintf("%s, limit %s", r.Algorithm, grouped(r.Limit))
}

func crowds(e effort) (list []crowd) {
	for _, r := range waiting {
		name := fmt.Sprintf("%s: %s calls wait, and all give up at once", kindOf(r), grouped(int64(e.crowd)))
		list = append(list, crowd{name, func(l *ratelimit.Limiter, e effort) error { return giveUp(l, r, e, 0) }})
	}
	for _, r := range waiting {
		name := fmt.Sprintf("%s: %s calls wait, and come and leave", kindOf(r), grouped(int64(e.crowd)))
		list = append(list, crowd{name, func(l *ratelimit.Limiter, e effort) error { return giveUp(l, r, e, e.load) }})
	}
	for _, n := range []int64{100, 300, 1000} {
		name := fmt.Sprintf("concurrency: %s permits of one key are renewed, per=3s", grouped(n))
		list = append(list, crowd{name, func(l *ratelimit.Limiter, e effort) error { return renewed(l, n, e) }})
	}
	return append(list,
		crowd{"concurrency, limit 1,000: 64 callers beside 900 others", running},
		crowd{"sliding-window of amounts, 4,096 entries: 512 callers", amountsCrowd},
		crowd{"sliding-window, limit 10,000 raised to 100,000: 512 callers, and their refunds", raised},
		crowd{"sliding-window, limit 10,000 raised to 100,000: one call of 10,000, and its refund", raisedAt(10_000)},
		crowd{"sliding-window, limit 10,000 raised to 100,000: one call of 100,000, and its refund", raisedAt(100_000)},
		crowd{"sliding-window, limit 10,000: 64 refunds of one permit each", refunds},
		crowd{"sliding-window and calendar: 512 callers, 512 subjects", subjectsCrowd},
		crowd{"255 rules in one call", manyRules},
	)
}

// measureLongest measures the longest single command of each case by the server's own time, which is what SLOWLOG says. Other work on the machine
// can only make a command longer, so the shortest of several turns counts.
func measureLongest(server *redisServer, e effort) ([]table, error) {
	t := table{
		title:  "The longest command, by the server's own time: microseconds",
		header: []string{"", "FCALL", "above 1 ms, of", "EVALSHA", "above 1 ms, of"},
	}
	pool := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: many, ReadTimeout: time.Minute})
	defer pool.Close()
	for _, c := range crowds(e) {
		row := []string{c.name}
		for _, options := range [][]redisstore.Option{nil, {redisstore.WithoutFunctions()}} {
			var best slowest
			for i := range e.repeats {
				found, err := server.slowest(oursAsking(pool, options...), c, e)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				if i == 0 || found.longest < best.longest {
					best = found
				}
			}
			row = append(row, grouped(best.longest), fmt.Sprintf("%d of %d", best.long, best.commands))
		}
		t.add(row...)
	}
	return []table{t}, server.flush()
}

// slowest is what a server's log of slow commands says.
type slowest struct {
	longest  int64 // microseconds
	long     int   // commands above a millisecond
	commands int   // commands in the log
}

const logged = 100_000 // commands in the log at most

// slowest runs a case, and reads the log.
func (s *redisServer) slowest(l *ratelimit.Limiter, c crowd, e effort) (found slowest, err error) {
	if err := s.flush(); err != nil {
		return found, err
	}
	if _, err := ours(l, fixed(plenty, long))(newSubject()); err != nil { // from here on the server knows the script
		return found, err
	}
	time.Sleep(50 * time.Millisecond)
	for _, command := range [][]any{
		{"config", "set", "slowlog-max-len", logged}, {"config", "set", "slowlog-log-slower-than", 0}, {"slowlog", "reset"},
	} {
		if err := s.client.Do(ctx, command...).Err(); err != nil {
			return found, err
		}
	}
	err = c.run(l, e)
	s.client.ConfigSet(ctx, "slowlog-log-slower-than", "-1")
	if err != nil {
		return found, err
	}
	commands, err := s.client.SlowLogGet(ctx, -1).Result()
	for _, command := range commands {
		if name := command.Args[0]; name == "fcall" || name == "evalsha" {
			took := command.Duration.Microseconds()
			found.commands++
			found.longest = max(found.longest, took)
			if took > 1000 {
				found.long++
			}
		}
	}
	return found, err
}

// each calls do in many goroutines, and returns the first error.
func each(n int, do func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- do(i) }()
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// giveUp lets calls wait behind a limit that is used up. They give up together, or at random times within the span.
func giveUp(l *ratelimit.Limiter, r ratelimit.Rule, e effort, span time.Duration) error {
	q := ratelimit.Request{Rule: r, Key: newSubject(), Cost: r.Limit}
	if r.Algorithm == ratelimit.LeakyBucket {
		q.Cost = 1
	}
	if _, err := l.Allow(ctx, q); err != nil {
		return err
	}
	q.Cost = 1 + r.Limit/1_000_000 // so that no call waits for too long
	all, cancel := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	for range e.crowd {
		waiters.Go(func() {
			one, cancel := context.WithCancel(all)
			defer cancel()
			if span > 0 {
				time.Sleep(rand.N(span))
				time.AfterFunc(rand.N(span), cancel)
			}
			_, _ = l.Wait(one, q) // fails when it is cancelled
		})
	}
	if span == 0 {
		time.Sleep(e.load)
		cancel()
	}
	waiters.Wait()
	cancel()
	time.Sleep(e.load / 10) // until all is given back
	return nil
}

// renewed holds permits of one key until the beat has renewed them a few times.
func renewed(l *ratelimit.Limiter, permits int64, e effort) error {
	r := rule(ratelimit.Rule{Limit: 1000, Per: 3 * time.Second, Algorithm: ratelimit.Concurrency})
	rules, subject := wrap.NewRules("sms.Sender.SendCode", r), newSubject()
	limits := rules.On(l)
	var taken []*wrap.Taken
	for range permits {
		t, err := wrap.Begin(ctx, limits, rules, wrap.Charge{Key: subject, Cost: 1})
		if err != nil {
			return err
		}
		taken = append(taken, t)
	}
	time.Sleep(4 * e.load)
	return each(len(taken), func(i int) error {
		taken[i].Release(ctx)
		return nil
	})
}

// running makes calls that take a permit and give it back.
func running(l *ratelimit.Limiter, e effort) error {
	q := ratelimit.Request{Rule: rule(ratelimit.Rule{Limit: 1000, Per: time.Minute, Algorithm: ratelimit.Concurrency}), Key: newSubject()}
	for range 900 {
		if _, err := l.Allow(ctx, q); err != nil {
			return err
		}
	}
	return each(many, func(int) error {
		for range e.calls / 10 {
			d, err := l.Allow(ctx, q)
			if err != nil || !d.Allowed {
				return fmt.Errorf("admitted is %t, error %w", d.Allowed, err)
			}
			if err := d.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// amountsCrowd makes calls until there are as many entries as there can be, and more.
func amountsCrowd(l *ratelimit.Limiter, e effort) error {
	q := ratelimit.Request{Rule: sliding(100_000_000, time.Minute), Key: newSubject()}
	return each(512, func(i int) error {
		q := q
		for k := range e.calls / 20 {
			q.Cost = int64(1 + (i+k)%50)
			if d, err := l.Allow(ctx, q); err != nil || !d.Allowed {
				return fmt.Errorf("admitted is %t, error %w", d.Allowed, err)
			}
		}
		return nil
	})
}

// raisedRule is a rule whose limit an override has raised.
func raisedRule(l *ratelimit.Limiter) (ratelimit.Rule, error) {
	r, limit := sliding(10_000, time.Minute), int64(100_000)
	return r, l.Overrides().SetLocal(r.Name, ratelimit.Override{Limit: &limit})
}

func raised(l *ratelimit.Limiter, e effort) error {
	r, err := raisedRule(l)
	if err != nil {
		return err
	}
	q := ratelimit.Request{Rule: r, Key: newSubject(), Cost: 10_000}
	for range 9 {
		if _, err := l.Allow(ctx, q); err != nil {
			return err
		}
	}
	q.Cost = 1
	return each(512, func(int) error {
		d, err := l.Allow(ctx, q)
		if err != nil {
			return err
		}
		return d.Refund(ctx)
	})
}

func raisedAt(cost int64) func(*ratelimit.Limiter, effort) error {
	return func(l *ratelimit.Limiter, _ effort) error {
		r, err := raisedRule(l)
		if err != nil {
			return err
		}
		d, err := l.Allow(ctx, ratelimit.Request{Rule: r, Key: newSubject(), Cost: cost})
		if err != nil || !d.Allowed {
			return fmt.Errorf("admitted is %t, error %w", d.Allowed, err)
		}
		return d.Refund(ctx)
	}
}

// refunds gives back permits of a full window at once.
func refunds(l *ratelimit.Limiter, _ effort) error {
	q := ratelimit.Request{Rule: sliding(10_000, time.Minute), Key: newSubject()}
	var made []ratelimit.Decision
	for range many {
		q.Cost = 1
		d, err := l.Allow(ctx, q)
		if err != nil {
			return err
		}
		made = append(made, d)
		q.Cost = 10_000/many - 1
		if _, err := l.Allow(ctx, q); err != nil {
			return err
		}
	}
	return each(many, func(i int) error { return made[i].Refund(ctx) })
}

func subjectsCrowd(l *ratelimit.Limiter, e effort) error {
	rules := wrap.NewRules("sms.Sender.SendCode", sliding(1000, time.Minute), yearly(1e15))
	limits := rules.On(l)
	return each(512, func(i int) error {
		subject := newSubject()
		for range e.calls / 10 {
			if err := wrap.Take(ctx, limits, rules, subject, subject); err != nil {
				return err
			}
		}
		return nil
	})
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
