package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	sethvargo "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
	"golang.org/x/time/rate"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// decide decides one call for a subject.
type decide func(subject string) (allowed bool, err error)

// named is a limiter with the name of its row.
type named struct {
	name   string
	decide decide
}

// The names of rows that are in several tables.
const (
	redisRateOne = "redis_rate, one rule"
	both         = "ours: sliding-window and calendar"
)

// expect makes a call that has to be admitted, or refused.
func (d decide) expect(allowed bool, subject string) error {
	got, err := d(subject)
	if err == nil && got != allowed {
		err = fmt.Errorf("subject %s: admitted is %t; expected %t", subject, got, allowed)
	}
	return err
}

// failing fails every call, because the limiter could not be made.
func failing(err error) decide { return func(string) (bool, error) { return false, err } }

var subjects atomic.Int64 // the number of subjects so far

// newSubject returns a phone number that no call has used.
func newSubject() string { return fmt.Sprintf("1%010d", subjects.Add(1)) }

const (
	many   = 64               // callers at once
	plenty = 1_000_000        // a limit that no measurement on the server reaches
	long   = 1000 * time.Hour // a window that does not end during a run, so that refused calls stay refused
)

// rule gives a rule the name and key that generated code has for //ratelimit:rule key="{phone}" above a method.
func rule(r ratelimit.Rule) ratelimit.Rule {
	r.Name, r.Key = "sms.Sender.SendCode", "{phone}"
	return r
}

func sliding(limit int64, per time.Duration) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: per})
}

func fixed(limit int64, per time.Duration) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: per, Algorithm: ratelimit.FixedWindow})
}

func bucket(limit int64, per time.Duration) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: per, Algorithm: ratelimit.TokenBucket})
}

func leaky(limit int64, per time.Duration) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: per, Algorithm: ratelimit.LeakyBucket})
}

// yearly is a calendar rule whose window hardly ends during a run.
func yearly(limit int64) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Cron: "0 0 0 1 1 *"})
}

const maxRules = 5 // of one call

// ours decides with this module, under all rules for one subject, as generated code does.
func ours(limiter *ratelimit.Limiter, rules ...ratelimit.Rule) decide {
	prepared := wrap.NewRules("sms.Sender.SendCode", rules...)
	limits := prepared.On(limiter)
	return func(subject string) (bool, error) {
		var keys [maxRules]string
		for i := range rules {
			keys[i] = subject
		}
		return admitted(wrap.Take(ctx, limits, prepared, keys[:len(rules)]...))
	}
}

func admitted(err error) (bool, error) {
	if errors.Is(err, ratelimit.ErrTooManyRequests) {
		return false, nil
	}
	return err == nil, err
}

// oursAtOnce takes a whole limit in as few calls as possible.
func oursAtOnce(limiter *ratelimit.Limiter, limit int64, rules ...ratelimit.Rule) decide {
	const maxCost = 10_000 // of one call on a sliding window
	prepared := wrap.NewRules("sms.Sender.SendCode", rules...)
	limits := prepared.On(limiter)
	return func(subject string) (allowed bool, err error) {
		for left := limit; left > 0 && err == nil; left -= maxCost {
			charge := wrap.Charge{Key: subject, Cost: min(left, maxCost)}
			allowed, err = admitted(wrap.TakeCharges(ctx, limits, prepared, slices.Repeat([]wrap.Charge{charge}, len(rules))...))
		}
		return allowed, err
	}
}

func onRedis(client redis.UniversalClient) *ratelimit.Limiter {
	return ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
}

// asking is like onRedis, but the limiter remembers no refusals and asks the server each time.
func asking(client redis.UniversalClient, options ...redisstore.Option) *ratelimit.Limiter {
	options = append(options, redisstore.WithTimeout(time.Minute), redisstore.WithRefusalMemory(0))
	return ratelimit.New(redisstore.New(client, options...))
}

// inProcess returns a limiter in memory, with room for two rules and all keys.
func inProcess() *ratelimit.Limiter {
	return ratelimit.New(memstore.New(memstore.WithMaxKeys(2*plenty), memstore.WithMaxBytes(1<<33)))
}

// redisRate asks redis_rate once for each limit, each with its own key, as a program with several rules would. If one limit refuses, it does not
// give back what the others took.
func redisRate(client redis.UniversalClient, limits ...redis_rate.Limit) decide {
	limiter := redis_rate.NewLimiter(client)
	return func(subject string) (bool, error) {
		allowed := true
		for i, limit := range limits {
			result, err := limiter.Allow(ctx, fmt.Sprint(subject, ":", i), limit)
			if err != nil {
				return false, err
			}
			allowed = allowed && result.Allowed > 0
		}
		return allowed, nil
	}
}

func ululeRedis(client ululeredis.Client, limit int64, per time.Duration) decide {
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return failing(err)
	}
	return ululeOn(store, limit, per)
}

func ululeOn(store ulule.Store, limit int64, per time.Duration) decide {
	limiter := ulule.New(store, ulule.Rate{Limit: limit, Period: per})
	return func(subject string) (bool, error) {
		c, err := limiter.Get(ctx, subject)
		return !c.Reached, err
	}
}

func xTimeRate() decide {
	var limiters sync.Map
	return func(subject string) (bool, error) {
		l, ok := limiters.Load(subject)
		if !ok {
			l, _ = limiters.LoadOrStore(subject, rate.NewLimiter(1e9, 1e9))
		}
		return l.(*rate.Limiter).Allow(), nil
	}
}

func throttledMemory() decide {
	store, err := throttledmem.NewCtx(0)
	if err != nil {
		return failing(err)
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(1e9, time.Second), MaxBurst: 1e9})
	if err != nil {
		return failing(err)
	}
	return func(subject string) (bool, error) {
		limited, _, err := limiter.RateLimitCtx(ctx, subject, 1)
		return !limited, err
	}
}

func sethvargoMemory() decide {
	store, err := sethvargo.New(&sethvargo.Config{Tokens: 1e15, Interval: time.Hour})
	if err != nil {
		return failing(err)
	}
	return func(subject string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, subject)
		return ok, err
	}
}
