package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// place is permits for a time to come.
type place struct {
	In      string `json:"in"`
	Permits int64  `json:"permits"`
}

// maxPermits is how many of the newest permits of a sliding window are looked at.
const maxPermits = 10_000

// places returns the permits that calls wait for, and those that calls gave up while others waited behind them. The rule is q's as the
// overrides leave it.
func (t *tool) places(ctx context.Context, q ratelimit.Request, rule ratelimit.Rule) (waiting, free []place, err error) {
	if rule.Distinct != "" || rule.Prepay || rule.Warmup > 0 || rule.Algorithm == ratelimit.SlidingCounter {
		return nil, nil, nil // no call waits for its own permits
	}
	key, err := t.limiter.StateKey(q)
	if err != nil {
		return nil, nil, err
	}
	clock, err := t.client.Time(ctx).Result()
	if err != nil {
		return nil, nil, err
	}
	now := clock.UnixMicro()
	var due []lua.Due
	if rule.Algorithm == ratelimit.SlidingWindow && rule.Cron == "" {
		permits, err := t.client.LRange(ctx, key, -maxPermits, -1).Result()
		if err != nil {
			return nil, nil, err
		}
		due = lua.DueOfPermits(permits, now)
	} else {
		state, err := t.get(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		due = dueOfState(rule, state, now)
	}
	state, err := t.get(ctx, strings.Replace(key, "}:", "}:free:", 1))
	return placesOf(due, now), placesOf(lua.FreePlaces(state, now), now), err
}

// dueOfState returns what calls wait for in a window or a bucket.
func dueOfState(rule ratelimit.Rule, state string, now int64) []lua.Due {
	if rule.Cron != "" || rule.Algorithm == ratelimit.FixedWindow {
		return lua.DueOfWindows(state, now)
	}
	burst := rule.Burst
	if rule.Algorithm == ratelimit.LeakyBucket {
		burst = 1
	}
	return lua.DueOfBucket(state, rule.Per.Microseconds(), burst, now)
}

func placesOf(due []lua.Due, now int64) (places []place) {
	for _, d := range due {
		places = append(places, place{words(time.Duration(d.At-now) * time.Microsecond), d.Permits})
	}
	return places
}

// overridden returns a rule as the overrides in the store leave it.
func (t *tool) overridden(ctx context.Context, rule ratelimit.Rule) (ratelimit.Rule, error) {
	all, err := t.limiter.Overrides().All(ctx)
	if all == nil {
		return rule, err
	}
	name, _, _ := strings.Cut(rule.Name, "#")
	o, ok := all[name]
	if !ok || !o.Until.IsZero() && o.Until.Before(time.Now()) {
		return rule, nil
	}
	if o.Limit != nil {
		rule.Limit = *o.Limit
	}
	if o.Per > 0 {
		rule.Per = o.Per
	}
	if o.Burst > 0 {
		rule.Burst = o.Burst
	}
	return rule, nil
}

func (t *tool) get(ctx context.Context, key string) (string, error) {
	text, err := t.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return text, err
}
