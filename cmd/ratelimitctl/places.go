package main

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// place is a number of permits for a future time.
type place struct {
	In      string `json:"in"`
	Permits int64  `json:"permits"`
}

// places returns the permits that calls wait for, and the free places: permits that calls gave up while others waited behind them. rule is q's
// rule with its override applied. It must be valid.
func (t *tool) places(ctx context.Context, q ratelimit.Request, rule ratelimit.Rule) (waiting, free []place, err error) {
	if rule.Distinct != "" || rule.Prepay || rule.Warmup > 0 {
		return nil, nil, nil // no call waits for its own permits
	}
	key, _ := t.limiter.StateKey(q)
	due, left, err := lua.Places(ctx, t.client, key, rule.Per, rule.Burst)
	return placesOf(due), placesOf(left), err
}

func placesOf(due []lua.Due) (places []place) {
	for _, d := range due {
		places = append(places, place{words(d.In), d.Permits})
	}
	return places
}
