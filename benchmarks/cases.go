package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// decide decides one call for a subject.
type decide func(subject string) (allowed bool, err error)

// decideMember decides one call for a subject and a member.
type decideMember func(subject, member string) (allowed bool, err error)

// plenty is a limit that no measurement reaches.
const plenty = 1_000_000

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

// counter returns a sliding counter. 0 slices means the default.
func counter(limit, slices int64, per time.Duration) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: per, Algorithm: ratelimit.SlidingCounter, Slices: slices})
}

func distinctSliding(limit int64) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Per: long, Distinct: "{stranger}"})
}

func distinctYearly(limit int64) ratelimit.Rule {
	r := yearly(limit)
	r.Distinct = "{stranger}"
	return r
}

// yearly is a calendar rule whose window hardly ends during a run.
func yearly(limit int64) ratelimit.Rule {
	return rule(ratelimit.Rule{Limit: limit, Cron: "0 0 0 1 1 *"})
}

// ours decides with this module, under all rules for one subject.
func ours(limiter *ratelimit.Limiter, rules ...ratelimit.Rule) decide {
	prepared := wrap.NewRules("sms.Sender.SendCode", rules...)
	limits := prepared.On(limiter)
	return func(subject string) (bool, error) {
		return admitted(wrap.Take(ctx, limits, prepared, slices.Repeat([]string{subject}, len(rules))...))
	}
}

// maxCost is the largest cost of one call on a sliding window.
const maxCost = 10_000

// oursAtOnce takes a whole limit in as few calls as possible.
func oursAtOnce(limiter *ratelimit.Limiter, cost int64, rules ...ratelimit.Rule) decide {
	prepared := wrap.NewRules("sms.Sender.SendCode", rules...)
	limits := prepared.On(limiter)
	return func(subject string) (bool, error) {
		for left := cost; left > 0; left -= maxCost {
			charge := wrap.Charge{Key: subject, Cost: min(left, maxCost)}
			ok, err := admitted(wrap.TakeCharges(ctx, limits, prepared, slices.Repeat([]wrap.Charge{charge}, len(rules))...))
			if !ok || err != nil {
				return ok, err
			}
		}
		return true, nil
	}
}

// oursCounting decides with this module, under a rule with Distinct.
func oursCounting(limiter *ratelimit.Limiter, r ratelimit.Rule) decideMember {
	prepared := wrap.NewRules("sms.Sender.SendCode", r)
	limits := prepared.On(limiter)
	return func(subject, member string) (bool, error) {
		return admitted(wrap.TakeCharges(ctx, limits, prepared, wrap.Charge{Key: subject, Member: member, Cost: 1}))
	}
}

func admitted(err error) (bool, error) {
	if errors.Is(err, ratelimit.ErrTooManyRequests) {
		return false, nil
	}
	return err == nil, err
}

func oursOn(client redis.UniversalClient) *ratelimit.Limiter {
	return ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
}

// oursAsking is like oursOn, but the limiter remembers no refusals and asks the server each time.
func oursAsking(client redis.UniversalClient, options ...redisstore.Option) *ratelimit.Limiter {
	options = append(options, redisstore.WithTimeout(time.Minute), redisstore.WithRefusalMemory(0))
	return ratelimit.New(redisstore.New(client, options...))
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

func gcra(limit int) redis_rate.Limit { return redis_rate.PerMinute(limit) }

func ululeRedis(client ululeredis.Client, limit int64, per time.Duration) (decide, error) {
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, err
	}
	return ululeOn(store, limit, per), nil
}

func ululeOn(store ulule.Store, limit int64, per time.Duration) decide {
	limiter := ulule.New(store, ulule.Rate{Limit: limit, Period: per})
	return func(subject string) (bool, error) {
		c, err := limiter.Get(ctx, subject)
		return !c.Reached, err
	}
}

// emptyScript runs a script that does nothing.
func emptyScript(client *redis.Client) decide {
	script := redis.NewScript("return 1")
	return func(subject string) (bool, error) {
		return true, script.Run(ctx, client, []string{subject}).Err()
	}
}
