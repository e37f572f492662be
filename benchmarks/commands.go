package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// occasion is a kind of call whose commands are counted.
type occasion struct {
	name   string
	per    time.Duration // the rule's window; 0 means one so long that no call is admitted by chance
	wait   time.Duration // the rule's Wait
	second bool          // the subject has just made another call
	end    time.Duration // the time after which the call's context ends
	want   error
}

const pause = 50 * time.Millisecond

var occasions = []occasion{
	{name: "admitted, without wait="},
	{name: "refused, without wait=", second: true, want: ratelimit.ErrTooManyRequests},
	{name: "admitted at once, with wait=", wait: long},
	{name: "admitted after a wait", per: pause, wait: long, second: true},
	{name: "refused, as the wait would be too long", wait: time.Millisecond, second: true, want: ratelimit.ErrTooManyRequests},
	{name: "cancelled during the wait", wait: long, second: true, end: pause / 10, want: context.Canceled},
}

// measureCommands counts the commands that a call causes on the server.
func measureCommands(server *redisServer, e effort) ([]table, error) {
	t := table{title: "Commands of a call: scripts, and commands inside them", header: []string{"one rule"}}
	kinds := []func(int64, time.Duration) ratelimit.Rule{sliding, bucket, leaky}
	for _, kind := range kinds {
		t.header = append(t.header, kind(1, pause).Algorithm.String()+": scripts", "inside")
	}
	limiter := oursAsking(server.client)
	if _, err := ours(limiter, sliding(1, pause))(newSubject()); err != nil { // from here on the server knows the script
		return nil, err
	}
	for _, o := range occasions {
		row := []string{o.name}
		for _, kind := range kinds {
			r := kind(1, cmp.Or(o.per, long))
			r.Wait = o.wait
			rules := wrap.NewRules("sms.Sender.SendCode", r)
			scripts, inside, err := o.count(server, rules.On(limiter), rules, e.repeats)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.name, err)
			}
			row = append(row, number(scripts), number(inside))
		}
		t.add(row...)
	}
	return []table{t}, nil
}

// count returns the least of n calls, each of a new subject. Beats of the limiter can only add to it.
func (o occasion) count(server *redisServer, limits *wrap.Limits, rules *wrap.Rules, n int) (
	scripts, inside float64, err error,
) {
	scripts, inside = math.Inf(1), math.Inf(1)
	for range n {
		subject := newSubject()
		if o.second {
			if err := wrap.Take(ctx, limits, rules, subject); err != nil {
				return 0, 0, err
			}
		}
		before, err := server.calls()
		if err != nil {
			return 0, 0, err
		}
		if err := o.call(limits, rules, subject); !errors.Is(err, o.want) {
			return 0, 0, fmt.Errorf("found error %v; expected %v", err, o.want)
		}
		after, err := server.calls()
		if err != nil {
			return 0, 0, err
		}
		scripts = min(scripts, after.scripts-before.scripts)
		inside = min(inside, after.others-before.others)
	}
	return scripts, inside, nil
}

func (o occasion) call(limits *wrap.Limits, rules *wrap.Rules, subject string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.end > 0 {
		defer time.AfterFunc(o.end, cancel).Stop()
	}
	return wrap.Take(ctx, limits, rules, subject)
}

// calls is the number of commands that the server has run.
type calls struct {
	scripts float64
	others  float64 // commands that only scripts call in this measurement
}

func (s *redisServer) calls() (c calls, err error) {
	info, err := s.info()
	for name, stats := range info {
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok || command == "info" { // INFO is ours
			continue
		}
		first, _, _ := strings.Cut(stats, ",")
		n := redisproc.Parse(strings.TrimPrefix(first, "calls="))
		if command == "evalsha" || command == "eval" || command == "fcall" {
			c.scripts += n
		} else {
			c.others += n
		}
	}
	return c, err
}
