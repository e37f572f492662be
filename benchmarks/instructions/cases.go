package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// counted is a case whose instructions are counted.
type counted struct {
	name    string
	wanted  string // how many instructions a decision is to take at most; "" if that is open
	refused bool   // all its calls are refused
	make    func() decide
}

// decide makes a call, and reports whether it was admitted. Calls have the numbers 0, 1, 2, ...
type decide func(i int) bool

// cases begin with the loop alone.
var cases = []counted{
	{"", "", false, func() decide { return func(i int) bool { return user(i) != "" } }},
	{"one rule: token bucket", "1800", false, limited(asDeclared, (*LimitedLimits).Bucket)},
	{"one rule: fixed window", "1800", false, limited(asDeclared, (*LimitedLimits).Fixed)},
	{"one rule: sliding window", "", false, limited(asDeclared, (*LimitedLimits).Sliding)},
	{"two rules: token bucket and fixed window, one key", "2800", false, limited(asDeclared, (*LimitedLimits).Two)},
	{"limiter.Allow with one request: token bucket", "2600", false, allow},
	{"token bucket, refused", "", true, limited(asDeclared, (*LimitedLimits).Refused)},
	{"token bucket, of 16 limiters in turn", "", false, inTurn(asDeclared)},
	{"token bucket, while another rule has an override", "", false, limited(overrideOther, (*LimitedLimits).Bucket)},
	{"token bucket, of 16 limiters in turn, while another rule has an override", "", false, inTurn(overrideOther)},
	{"token bucket, while the key has an override", "", false, limited(overrideKeys, (*LimitedLimits).Bucket)},
	{"x/time/rate in a sync.Map", "", false, xTimeRate},
}

// run makes one call for each subject, and n more that are checked.
func (c counted) run(n int) error {
	d := c.make()
	for i := range users {
		d(i)
	}
	for i := range n {
		if admitted := d(i); admitted == c.refused {
			return fmt.Errorf("%s: call %d: admitted is %t", c.name, i, admitted)
		}
	}
	return nil
}

// ctx can end, like the context of a request.
var ctx, _ = context.WithCancel(context.Background())

// users are the subjects. Calls go round.
var users = func() (all [512]string) {
	for i := range all {
		all[i] = "13800000" + strconv.Itoa(100+i)
	}
	return all
}()

func user(i int) string { return users[i%len(users)] }

func inProcess() *ratelimit.Limiter { return ratelimit.New(memstore.New()) }

// limited returns the maker of calls of a method.
func limited(set func(*ratelimit.Limiter), method func(*LimitedLimits, context.Context, string) error) func() decide {
	return func() decide {
		limiter := inProcess()
		set(limiter)
		limits := NewLimitedLimits(silent{}, limiter)
		return func(i int) bool { return method(limits, ctx, user(i)) == nil }
	}
}

func asDeclared(*ratelimit.Limiter) {}

func overrideOther(l *ratelimit.Limiter) { override(l, "instructions.Limits.Fixed", "") }

func overrideKeys(l *ratelimit.Limiter) {
	for _, user := range users {
		override(l, "instructions.Limits.Bucket", user)
	}
}

func override(l *ratelimit.Limiter, rule, key string) {
	err := l.Overrides().Set(ratelimit.WithActor(ctx, "kim", "counted"), rule, ratelimit.Override{Key: key, Factor: 2})
	if err != nil {
		panic(err) // a rule can have it, and there is room
	}
}

// inTurn returns the maker of calls of one method that go round 16 limiters.
func inTurn(set func(*ratelimit.Limiter)) func() decide {
	return func() decide {
		var each [16]decide
		for i := range each {
			each[i] = limited(set, (*LimitedLimits).Bucket)()
		}
		return func(i int) bool { return each[i%len(each)](i) }
	}
}

func allow() decide {
	limiter := inProcess()
	rule := ratelimit.Rule{Name: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 1_000_000, Per: 24 * time.Hour}
	return func(i int) bool {
		d, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: user(i)})
		return d.Allowed && err == nil
	}
}

func xTimeRate() decide {
	var limiters sync.Map
	return func(i int) bool {
		l, ok := limiters.Load(user(i))
		if !ok {
			l, _ = limiters.LoadOrStore(user(i), rate.NewLimiter(1e9, 1e9))
		}
		return l.(*rate.Limiter).Allow()
	}
}
