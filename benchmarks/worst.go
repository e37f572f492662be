package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// worst is the script time of the longest call of a case. Each turn makes the same calls. Of each call the shortest time counts, because
// other work on the machine can only make it longer.
type worst struct {
	name  string
	times []float64 // of each call
	next  int       // the number of the next call of the turn
}

func (w *worst) longest() string { return number(slices.Max(w.times)) }

// time makes the next call of a turn.
func (w *worst) time(server *redisServer, call func() error) error {
	before, err := server.spent()
	if err != nil {
		return err
	}
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	after, err := server.spent()
	took := after.Script - before.Script
	if w.next == len(w.times) {
		w.times = append(w.times, took)
	}
	w.times[w.next] = min(w.times[w.next], took)
	w.next++
	return err
}

// turns calls measure several times, with the cases in found.
func turns(e effort, found []worst, measure func() error) ([]worst, error) {
	for range e.repeats {
		for i := range found {
			found[i].next = 0
		}
		if err := measure(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// large is a sliding window that was filled.
type large struct {
	limiter       *ratelimit.Limiter
	request       ratelimit.Request
	first, middle ratelimit.Decision // charges of one permit each
	filled        time.Time
}

// largeCases are calls on a large window. Some are made after its permits have left.
var largeCases = []struct {
	name  string
	idles bool
	call  func(*large) error
}{
	{"refused, with a report", false, (*large).report},
	{"a refund of the first permit", false, func(l *large) error { return l.first.Refund(ctx) }},
	{"a refund of the middle permit", false, func(l *large) error { return l.middle.Refund(ctx) }},
	{"after a pause: a call", true, func(l *large) error { return l.allow() }},
	{"after a pause: with a report", true, (*large).report},
	{"after a pause: UpTo 1,000", true, func(l *large) error {
		l.request.Cost, l.request.UpTo = 1000, true
		return l.allow()
	}},
	{"after a pause: the limit lowered to 10", true, func(l *large) error {
		l.request.Rule.Limit = 10
		return l.allow()
	}},
}

func (l *large) allow() error {
	_, err := l.limiter.Allow(ctx, l.request)
	return err
}

func (l *large) report() error {
	reported, _ := ratelimit.WithReport(ctx)
	_, err := l.limiter.Allow(reported, l.request)
	return err
}

// fill uses up the limit by calls that cost as much as they may, and times each of them.
func (l *large) fill(server *redisServer, w *worst) error {
	limit := l.request.Rule.Limit
	for used, cost := int64(0), int64(0); used < limit; used += cost {
		cost = min(maxCost, limit-used)
		one := used == 0 || used == limit/2
		if one {
			cost = 1
		} else if used < limit/2 {
			cost = min(cost, limit/2-used)
		}
		q := l.request
		q.Cost = cost
		err := w.time(server, func() error {
			d, err := l.limiter.Allow(ctx, q)
			switch {
			case err == nil && !d.Allowed:
				err = fmt.Errorf("refused with %d of %d permits used", used, limit)
			case used == 0:
				l.first = d
			case one:
				l.middle = d
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func measureWorst(server *redisServer, e effort) ([]table, error) {
	t := table{title: "The longest single call on a large sliding window: script microseconds", header: []string{"limit"}}
	t.rows = [][]string{{"while it fills, up to 10,000 permits a call"}}
	for _, c := range largeCases {
		t.add(c.name)
	}
	for _, limit := range e.large {
		t.header = append(t.header, grouped(limit))
		found, err := worstByCase(server, e, limit)
		if err != nil {
			return nil, err
		}
		for i, w := range found {
			t.rows[i] = append(t.rows[i], w.longest())
		}
	}
	other := table{title: "The longest single call on other large states: script microseconds", header: []string{"", "script"}}
	for _, measure := range []func(*redisServer, effort) ([]worst, error){worstOfSlices, worstOfMembers, worstOfWaiters} {
		found, err := measure(server, e)
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			other.add(w.name, w.longest())
		}
	}
	return []table{t, other}, server.flush()
}

func worstByCase(server *redisServer, e effort, limit int64) ([]worst, error) {
	limiter := oursAsking(server.client)
	per := max(200*time.Millisecond, time.Duration(limit)*4*time.Microsecond)
	found := make([]worst, 1+len(largeCases))
	return turns(e, found, func() error {
		var paused []*large
		for i, c := range largeCases {
			l := &large{limiter: limiter, request: ratelimit.Request{Rule: sliding(limit, per), Key: newSubject()}}
			if err := l.fill(server, &found[0]); err != nil {
				return err
			}
			l.filled = time.Now()
			if c.idles {
				paused = append(paused, l)
			} else if err := found[i+1].time(server, func() error { return c.call(l) }); err != nil {
				return err
			}
		}
		for i, c := range largeCases {
			if !c.idles {
				continue
			}
			l := paused[0]
			paused = paused[1:]
			time.Sleep(time.Until(l.filled.Add(per)))
			if keys, err := l.limiter.StateKeys(l.request); err != nil || server.client.Exists(ctx, keys...).Val() == 0 {
				return fmt.Errorf("%s: the count of %d permits has expired: %v", c.name, limit, err)
			}
			if err := found[i+1].time(server, func() error { return c.call(l) }); err != nil {
				return err
			}
		}
		return server.flush()
	})
}

// worstOfSlices makes calls on sliding counters of 10,000 slices: while they fill, after a pause of almost a window, and refused ones.
func worstOfSlices(server *redisServer, e effort) ([]worst, error) {
	const per, slices = 2 * time.Second, 10_000
	found := []worst{{name: "sliding-counter, 10,000 slices, while they fill"}, {name: "the same, after a pause"}, {name: "the same, refused, with a report"}}
	return turns(e, found, func() error {
		l := &large{limiter: oursAsking(server.client), request: ratelimit.Request{Rule: counter(plenty, slices, per), Key: newSubject()}}
		for range e.calls * 8 {
			if err := found[0].time(server, l.allow); err != nil {
				return err
			}
		}
		time.Sleep(per * 9 / 10)
		if err := found[1].time(server, l.allow); err != nil {
			return err
		}
		l.request.Rule.Limit = 1
		if err := found[2].time(server, l.report); err != nil {
			return err
		}
		return server.flush()
	})
}

// worstOfMembers makes calls for new members after all others have left the window.
func worstOfMembers(server *redisServer, e effort) ([]worst, error) {
	found := []worst{{name: fmt.Sprintf("distinct, %s members that have left", grouped(e.members))}}
	limiter := oursAsking(server.client)
	return turns(e, found, func() error {
		q := ratelimit.Request{Rule: distinctSliding(plenty), Key: newSubject(), Member: "new"}
		keys, err := limiter.StateKeys(q)
		if err != nil {
			return err
		}
		members := make([]redis.Z, 0, 5000)
		for i := range e.members {
			members = append(members, redis.Z{Score: float64(i), Member: strconv.FormatInt(i, 10)})
			if len(members) == cap(members) || i == e.members-1 {
				if err := server.client.ZAdd(ctx, keys[0], members...).Err(); err != nil {
					return err
				}
				members = members[:0]
			}
		}
		for i := range 20 {
			q.Member = fmt.Sprint("new", i)
			err := found[0].time(server, func() error {
				_, err := limiter.Allow(ctx, q)
				return err
			})
			if err != nil {
				return err
			}
		}
		return server.flush()
	})
}

// worstOfWaiters makes calls behind a thousand that wait: one that is refused, and one that gives up.
func worstOfWaiters(server *redisServer, e effort) ([]worst, error) {
	rules := []ratelimit.Rule{sliding(1000, time.Minute), bucket(1000, time.Minute), fixed(1000, time.Minute), fixed(1, time.Minute)}
	found := make([]worst, len(rules))
	for i, r := range rules {
		found[i].name = fmt.Sprintf("%s, limit %s, behind 1,000 waiting calls", r.Algorithm, grouped(r.Limit))
	}
	return turns(e, found, func() error {
		for i, r := range rules {
			if err := behindWaiters(server, r, &found[i]); err != nil {
				return err
			}
		}
		return server.flush()
	})
}

func behindWaiters(server *redisServer, r ratelimit.Rule, w *worst) error {
	limiter := oursAsking(server.client)
	q := ratelimit.Request{Rule: r, Key: newSubject(), Cost: r.Limit}
	if _, err := limiter.Allow(ctx, q); err != nil {
		return err
	}
	q.Cost = 1
	waiting, cancel := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	for range 1000 {
		waiters.Go(func() { _, _ = limiter.Wait(waiting, q) }) // fails when it is cancelled below
	}
	defer waiters.Wait()
	defer cancel()
	time.Sleep(500 * time.Millisecond)
	return w.time(server, func() error {
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _ = limiter.Wait(soon, q) // gives up
		_, err := limiter.Allow(ctx, q)
		return err
	})
}
