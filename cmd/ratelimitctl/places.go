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

// places returns the permits that calls wait for in a count, and the free places: permits that calls gave up while others waited behind them.
// rule is that of the count, with its overrides applied. It must be valid.
func (t *tool) places(ctx context.Context, state string, rule ratelimit.Rule) (waiting, free []place, err error) {
	if rule.Distinct != "" || rule.Prepay || rule.Warmup > 0 {
		return nil, nil, nil // no call waits for its own permits
	}
	due, left, err := lua.Places(ctx, t.client, state, rule.Per, rule.Burst)
	return placesOf(due), placesOf(left), err
}

func placesOf(due []lua.Due) (places []place) {
	for _, d := range due {
		places = append(places, place{words(d.In), d.Permits})
	}
	return places
}
