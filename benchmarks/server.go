package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// traffic is a sequence of calls whose cost for the server is measured. Either all its calls are admitted, or all are refused.
type traffic struct {
	prepare func(calls int) error // runs before each round, and is not measured
	subject func(i int) string
	decide  decide
	refused bool

	script, cpu []float64 // microseconds per decision, for each round
}

var subjects atomic.Int64 // the number of subjects so far

// newSubject returns a phone number that no traffic has used.
func newSubject() string { return fmt.Sprintf("1%010d", subjects.Add(1)) }

const callsPerSubject = 100

// filling makes 100 calls for each subject, one subject after the other.
func filling(d decide) *traffic {
	subject := newSubject()
	return &traffic{decide: d, subject: func(i int) string {
		if i%callsPerSubject == 0 {
			subject = newSubject()
		}
		return subject
	}}
}

// steadyWindow is short. Its state outlives it by an eighth of its length, which is longer than the wait for its end.
const steadyWindow = 160 * time.Millisecond

// steady makes calls for subjects that had used up a window of limit permits. The permits have since left the window, so each call drops a permit
// for each that it adds, and all calls are admitted.
func steady(limit int64, fill, d decide) *traffic {
	var full []string
	return &traffic{
		decide:  d,
		subject: func(i int) string { return full[i%len(full)] },
		prepare: func(calls int) error {
			full = full[:0]
			for n := 0; n <= calls; n += int(limit) {
				full = append(full, newSubject())
				if _, err := fill(full[len(full)-1]); err != nil {
					return err
				}
			}
			time.Sleep(steadyWindow)
			return nil
		},
	}
}

// refused makes calls for one subject that has no permits left.
func refused(d decide) *traffic {
	subject := newSubject()
	return &traffic{
		decide:  d,
		refused: true,
		subject: func(int) string { return subject },
		prepare: func(int) error {
			for {
				if allowed, err := d(subject); err != nil || !allowed {
					return err
				}
			}
		},
	}
}

// round adds a sample of each figure.
func (t *traffic) round(server *redisServer, calls int) error {
	if t.prepare != nil {
		if err := t.prepare(calls); err != nil {
			return err
		}
	}
	before, err := server.spent()
	if err != nil {
		return err
	}
	for i := range calls {
		subject := t.subject(i)
		switch allowed, err := t.decide(subject); {
		case err != nil:
			return err
		case allowed == t.refused:
			return fmt.Errorf("call %d of %s: admitted is %t; expected %t", i, subject, allowed, !allowed)
		}
	}
	after, err := server.spent()
	t.script = append(t.script, (after.Script-before.Script)/float64(calls))
	t.cpu = append(t.cpu, (after.CPU-before.CPU)/float64(calls))
	return err
}

// measured is one line of the table of decisions. A nil traffic is not measured.
type measured struct {
	name             string
	allowed, refused *traffic
}

func measureServer(server *redisServer, e effort) ([]table, error) {
	decisions, err := decisionCases(server)
	if err != nil {
		return nil, err
	}
	further := furtherCases(server)
	flat := flatCases(server, e.limits)
	fullWindows := fullCases(server, e)
	var all []*traffic
	for _, m := range slices.Concat(decisions, flat) {
		all = append(all, m.allowed, m.refused)
	}
	for _, f := range further {
		all = append(all, f.rules...)
	}
	for _, c := range fullWindows {
		all = append(all, c.byLimit...)
	}
	all = slices.DeleteFunc(all, func(t *traffic) bool { return t == nil })
	err = server.onOneCore(func() error {
		for i := range e.rounds * len(all) {
			if err := all[i%len(all)].round(server, e.calls); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []table{
		decisionTable("Server cost of a decision", "against redis_rate", decisions),
		furtherTable(further),
		decisionTable("Server cost by the limit of a sliding window", "against the first line", flat),
		fullTable("Script time", fullWindows, e.limits, func(t *traffic) []float64 { return t.script }),
		fullTable("Server CPU", fullWindows, e.limits, func(t *traffic) []float64 { return t.cpu }),
	}, server.flush()
}

// long is a window that does not end during a run, so that refused calls stay refused.
const long = 1000 * time.Hour

func decisionCases(server *redisServer) ([]measured, error) {
	seldom := redis_rate.Limit{Rate: 10, Burst: 10, Period: long}
	limiter, byEvalsha := oursAsking(server.client), oursAsking(server.client, redisstore.WithoutFunctions())
	ulule, err := ululeRedis(server.client, 100, time.Minute)
	if err != nil {
		return nil, err
	}
	ululeNone, err := ululeRedis(server.client, 10, long)
	if err != nil {
		return nil, err
	}
	single := func(name string, admits, refuses ratelimit.Rule) measured {
		return measured{"ours: " + name, filling(ours(limiter, admits)), refused(ours(limiter, refuses))}
	}
	minute, hour := sliding(100, time.Minute), sliding(10, long)
	short := sliding(100, steadyWindow)
	return []measured{
		{"redis_rate, one rule", filling(redisRate(server.client, gcra(100))),
			refused(redisRate(server.client, seldom))},
		{"redis_rate, called twice for two rules", filling(redisRate(server.client, gcra(100), gcra(1000))),
			refused(redisRate(server.client, seldom, seldom))},
		{"ulule/limiter, one rule", filling(ulule), refused(ululeNone)},
		{"ours: sliding-window and calendar, filling; refused by the former", filling(ours(limiter, minute, yearly(plenty))),
			refused(ours(limiter, hour, yearly(plenty)))},
		{"ours: the same, steady; refused by the latter",
			steady(100, oursAtOnce(limiter, 100, short, yearly(plenty)), ours(limiter, short, yearly(plenty))),
			refused(ours(limiter, sliding(100, long), yearly(10)))},
		single("sliding-window, filling", minute, hour),
		{"ours: sliding-window, filling, by EVALSHA", filling(ours(byEvalsha, minute)), nil},
		{"ours: sliding-window, steady", steady(100, oursAtOnce(limiter, 100, short), ours(limiter, short)), nil},
		single("token-bucket", bucket(100, time.Minute), bucket(10, long)),
		single("leaky-bucket", leaky(leakyLimit, leakyPer), leaky(10, long)),
		single("fixed-window", fixed(100, time.Minute), fixed(10, long)),
		single("calendar", yearly(100), yearly(10)),
		{"a script that does nothing", filling(emptyScript(server.client)), nil},
	}, nil
}

// leakyLimit per leakyPer is a higher rate than that of the calls here.
const (
	leakyLimit = 5_000_000
	leakyPer   = 10 * time.Second
)

func flatCases(server *redisServer, limits []int64) []measured {
	limiter := oursAsking(server.client)
	var list []measured
	for _, limit := range limits {
		short := sliding(limit, steadyWindow)
		list = append(list, measured{
			"limit " + grouped(limit), steady(limit, oursAtOnce(limiter, limit, short), ours(limiter, short)),
			refused(ours(limiter, sliding(limit, long))),
		})
	}
	return list
}

// decisionTable returns a table that compares the cases with the first one.
func decisionTable(title, against string, cases []measured) table {
	t := table{title: title + ", microseconds", header: []string{
		against, "script, allowed", "", "server CPU, allowed", "", "script, refused", "", "server CPU, refused", "",
	}}
	first := cases[0]
	for _, m := range cases {
		row := []string{m.name}
		row = append(row, m.allowed.cells(first.allowed)...)
		row = append(row, m.refused.cells(first.refused)...)
		t.add(row...)
	}
	return t
}

func (t *traffic) cells(base *traffic) []string {
	if t == nil {
		return make([]string, 4)
	}
	script, cpu := low(t.script), low(t.cpu)
	return []string{
		number(script), ratio(script, low(base.script)), number(cpu), ratio(cpu, low(base.cpu)),
	}
}

// furtherRules is a case of calls under one rule, under two, and so on.
type furtherRules struct {
	name  string
	rules []*traffic
}

const maxRules = 5

func furtherCases(server *redisServer) []furtherRules {
	limiter := oursAsking(server.client)
	kinds := []struct {
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
	}
	var list []furtherRules
	for _, kind := range kinds {
		f := furtherRules{name: kind.name}
		var rules []ratelimit.Rule
		for n := 1; n <= maxRules; n++ {
			rules = append(rules, kind.rule(n))
			f.rules = append(f.rules, filling(ours(limiter, rules...)))
		}
		list = append(list, f)
	}
	return list
}

func furtherTable(list []furtherRules) table {
	t := table{title: "Further rules in one decision, allowed: script microseconds", header: []string{
		"rules of one subject", "1", "2", "3", "4", "5", "each further rule",
	}}
	for _, f := range list {
		row := []string{f.name}
		for _, t := range f.rules {
			row = append(row, number(low(t.script)))
		}
		each := (low(f.rules[maxRules-1].script) - low(f.rules[0].script)) / (maxRules - 1)
		t.add(append(row, number(each))...)
	}
	return t
}
