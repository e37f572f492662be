package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
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
	text, err := t.client.HGet(ctx, key.Escape(t.prefix)+":overrides", args[0]).Result()
	found := err == nil
	if !found && !errors.Is(err, redis.Nil) {
		return cmp.Or(t.limiter.Ping(ctx), err) // Ping says more about a server that fails
	}
	if err := t.limiter.Overrides().Clear(ctx, args[0]); err != nil {
		return err
	}
	said := "no override was set"
	if found {
		said = "cleared " + text
		if v := (ratelimit.Override{}); json.Unmarshal([]byte(text), &v) == nil {
			said = "cleared " + changes(v)
		}
	}
	return t.print(map[string]bool{"set": false, "found": found}, []string{said})
}

func (t *tool) listOverrides(ctx context.Context, _ []string, _ options) error {
	all, err := t.limiter.Overrides().All(ctx)
	if all == nil {
		return err
	}
	lines := [][]string{{"RULE", "CHANGE", "UNTIL", "SET BY", "SET AT"}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		lines = append(lines, []string{name, changes(v), local(v.Until), v.By, local(v.At)})
	}
	return cmp.Or(t.print(all, lines...), err) // err says which overrides cannot be read, or that there are too many
}

// changes returns the changes of an override as arguments of a directive.
func changes(v ratelimit.Override) string {
	var texts []string
	if v.Limit != nil {
		texts = append(texts, fmt.Sprint("limit=", *v.Limit))
	}
	if v.Per != 0 {
		texts = append(texts, "per="+period.Format(v.Per))
	}
	if v.Burst != 0 {
		texts = append(texts, fmt.Sprint("burst=", v.Burst))
	}
	if v.Mode != nil {
		texts = append(texts, "mode="+v.Mode.String())
	}
	return strings.Join(texts, " ")
}

// local returns a time in the user's time zone.
func local(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}
