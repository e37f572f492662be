package main

import (
	"context"
	"maps"
	"os/user"
	"slices"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func (t *tool) setOverride(ctx context.Context, args []string, o options) error {
	v := ratelimit.Override{Limit: o.limit, Per: o.per, Burst: o.burst, Mode: o.mode}
	if o.forTime > 0 {
		v.Until = time.Now().Add(o.forTime).UTC().Truncate(time.Second)
	}
	if u, err := user.Current(); err == nil {
		v.By = u.Username
	}
	if err := t.limiter.Overrides().Set(ctx, args[0], v); err != nil {
		return err
	}
	return t.print(v, []string{"set"})
}

func (t *tool) clearOverride(ctx context.Context, args []string, _ options) error {
	if err := t.limiter.Overrides().Clear(ctx, args[0]); err != nil {
		return err
	}
	return t.print(map[string]bool{"set": false}, []string{"cleared"})
}

func (t *tool) listOverrides(ctx context.Context, _ []string, _ options) error {
	all, err := t.limiter.Overrides().All(ctx)
	if all == nil {
		return err
	}
	lines := [][]string{{"RULE", "OVERRIDE"}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, err := all[name].MarshalJSON()
		if err != nil {
			return err
		}
		lines = append(lines, []string{name, string(text)})
	}
	if printed := t.print(all, lines...); printed != nil {
		return printed
	}
	return err // of those that are not understood
}
