package main

import (
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// traffic is calls of one caller. Either all are admitted, or all are refused.
type traffic struct {
	decide  decide
	refused bool
	subject func(i int) string
	prepare func(calls int) error // runs before each round, and is not measured
}

// filling makes 100 calls for each subject, one subject after the other.
func filling(d decide) traffic {
	subject := newSubject()
	return traffic{decide: d, prepare: func(int) error { return nil }, subject: func(i int) string {
		if i%100 == 0 {
			subject = newSubject()
		}
		return subject
	}}
}

// steadyWindow is short. Its state outlives it by an eighth of its length, which is longer than the wait for its end.
const steadyWindow = 160 * time.Millisecond

// steady makes calls for subjects that had used up a window of limit permits. The permits have since left the window, so each call drops a permit
// for each that it adds, and all calls are admitted.
func steady(limit int64, fill, d decide) traffic {
	var spent []string
	return traffic{decide: d, subject: func(i int) string { return spent[i%len(spent)] }, prepare: func(calls int) error {
		spent = spent[:0]
		for n := 0; n <= calls; n += int(limit) {
			spent = append(spent, newSubject())
			if err := fill.expect(true, spent[len(spent)-1]); err != nil {
				return err
			}
		}
		time.Sleep(steadyWindow)
		return nil
	}}
}

// refused makes calls for one subject that has no permits left.
func refused(d decide) traffic {
	subject := newSubject()
	return traffic{decide: d, refused: true, subject: func(int) string { return subject }, prepare: func(int) error { return useUp(d, subject) }}
}

// useUp makes calls until one is refused.
func useUp(d decide, subject string) error {
	for {
		if allowed, err := d(subject); err != nil || !allowed {
			return err
		}
	}
}

// round returns what a call costs the server.
func (t traffic) round(server *redisServer, calls int) (cost, error) {
	if err := t.prepare(calls); err != nil {
		return cost{}, err
	}
	return server.during(func() (int, error) {
		for i := range calls {
			if err := t.decide.expect(!t.refused, t.subject(i)); err != nil {
				return calls, err
			}
		}
		return calls, nil
	})
}

func serverSections(server *redisServer, e effort) []section {
	decision := section{
		title: "Server cost of a decision, microseconds", names: "against redis_rate", rounds: e.rounds, server: server, columns: []column{
			{"script, allowed", low, number, true}, {"server CPU, allowed", low, number, true},
			{"script, refused", low, number, true}, {"server CPU, refused", low, number, true},
		},
	}
	// pair is a case with calls that are admitted, and calls that are refused.
	pair := func(name string, admits, refuses traffic) benchmark {
		return benchmark{name, func() ([]float64, error) {
			allowed, err := admits.round(server, e.calls)
			if err != nil {
				return nil, err
			}
			refused, err := refuses.round(server, e.calls)
			return []float64{allowed.script, allowed.cpu, refused.script, refused.cpu}, err
		}}
	}
	limiter, byEvalsha := asking(server.client), asking(server.client, redisstore.WithoutFunctions())
	single := func(name string, limiter *ratelimit.Limiter, admits, refuses ratelimit.Rule) benchmark {
		return pair("ours: "+name, filling(ours(limiter, admits)), refused(ours(limiter, refuses)))
	}
	seldom := redis_rate.Limit{Rate: 10, Burst: 10, Period: long}
	minute, hundred, ten, short := sliding(100, time.Minute), sliding(100, long), sliding(10, long), sliding(100, steadyWindow)
	decision.cases = []benchmark{
		pair(redisRateOne, filling(redisRate(server.client, redis_rate.PerMinute(100))), refused(redisRate(server.client, seldom))),
		pair("redis_rate, called twice for two rules", filling(redisRate(server.client, redis_rate.PerMinute(100), redis_rate.PerMinute(1000))),
			refused(redisRate(server.client, seldom, seldom))),
		pair("ulule/limiter, one rule", filling(ululeRedis(server.client, 100, time.Minute)), refused(ululeRedis(server.client, 10, long))),
		pair(both+", filling; refused by the former",
			filling(ours(limiter, minute, yearly(plenty))), refused(ours(limiter, ten, yearly(plenty)))),
		pair("ours: the same, steady; refused by the latter",
			steady(100, oursAtOnce(limiter, 100, short, yearly(plenty)), ours(limiter, short, yearly(plenty))),
			refused(ours(limiter, hundred, yearly(10)))),
		single("sliding-window, filling", limiter, minute, ten),
		single("sliding-window, filling, by EVALSHA", byEvalsha, minute, ten),
		single("token-bucket", limiter, bucket(100, time.Minute), bucket(10, long)),
		single("leaky-bucket", limiter, leaky(leakyLimit, leakyPer), leaky(10, long)),
		single("fixed-window", limiter, fixed(100, time.Minute), fixed(10, long)),
		single("calendar", limiter, yearly(100), yearly(10)),
	}
	byLimit := decision
	byLimit.title, byLimit.names, byLimit.cases = "Server cost by the limit of a sliding window, microseconds", "against the first line", nil
	for _, limit := range e.limits {
		short := sliding(limit, steadyWindow)
		byLimit.cases = append(byLimit.cases, pair("limit "+grouped(float64(limit)),
			steady(limit, oursAtOnce(limiter, limit, short), ours(limiter, short)), refused(ours(limiter, sliding(limit, long)))))
	}
	return []section{decision, furtherSection(server, e), byLimit}
}

// leakyLimit per leakyPer is a higher rate than that of the calls here.
const (
	leakyLimit = 5_000_000
	leakyPer   = 10 * time.Second
)

// furtherSection measures calls under one rule, under two, and so on.
func furtherSection(server *redisServer, e effort) section {
	s := section{title: "Further rules in one decision, allowed: script microseconds", names: "rules of one subject", rounds: e.rounds, server: server}
	for n := range maxRules {
		s.columns = append(s.columns, column{fmt.Sprint(n + 1), low, number, false})
	}
	limiter := asking(server.client)
	for _, kind := range []struct {
		name string
		rule func(n int) ratelimit.Rule
	}{
		{"sliding-window", func(n int) ratelimit.Rule { return sliding(100, time.Duration(n)*time.Minute) }},
		{"token-bucket", func(n int) ratelimit.Rule { return bucket(100, time.Duration(n)*time.Minute) }},
		{"leaky-bucket", func(n int) ratelimit.Rule { return leaky(leakyLimit, time.Duration(n)*leakyPer) }},
		{"fixed-window", func(n int) ratelimit.Rule { return fixed(100, time.Duration(n)*time.Minute) }},
		{"calendar", func(n int) ratelimit.Rule {
			return rule(ratelimit.Rule{Limit: 100, Cron: fmt.Sprintf("0 0 0 %d * *", n)})
		}},
	} {
		var rules []ratelimit.Rule
		var all []traffic
		for n := range maxRules {
			rules = append(rules, kind.rule(n+1))
			all = append(all, filling(ours(limiter, rules...)))
		}
		s.cases = append(s.cases, benchmark{kind.name, func() (figures []float64, err error) {
			for _, t := range all {
				c, err := t.round(server, e.calls)
				if err != nil {
					return nil, err
				}
				figures = append(figures, c.script)
			}
			return figures, nil
		}})
	}
	return s
}
