package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func (t *tool) setOverride(ctx context.Context, args []string, o options) error {
	v := ratelimit.Override{Limit: o.limit, Per: o.per, Burst: o.burst, Mode: o.mode}
	if o.forTime > 0 {
		now, err := t.fleet.Clock(ctx)
		if err != nil {
			return err
		}
		v.Until = now.Add(o.forTime).UTC().Truncate(time.Second)
	}
	if err := t.limiter.Overrides().Set(ctx, args[0], v); err != nil {
		return err
	}
	return t.print(v, []string{"set"})
}

func (t *tool) clearOverride(ctx context.Context, args []string, _ options) error {
	all, err := t.limiter.Overrides().List(ctx)
	if all == nil {
		return err
	}
	if err := t.limiter.Overrides().Clear(ctx, args[0], ""); err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s ratelimit.Setting) bool { return s.Rule == args[0] && s.Key == "" })
	said := "no override was set"
	if i >= 0 {
		said = "cleared " + changes(all[i].Override)
	}
	return t.print(map[string]bool{"set": false, "found": i >= 0}, []string{said})
}

func (t *tool) listOverrides(ctx context.Context, _ []string, _ options) error {
	all, err := t.limiter.Overrides().List(ctx)
	if all == nil {
		return err
	}
	lines := [][]string{{"RULE", "KEY", "CHANGE", "UNTIL", "SET BY", "SET AT"}}
	for _, s := range all {
		lines = append(lines, []string{s.Rule, s.Key, changes(s.Override), local(s.Until), s.By, local(s.At)})
	}
	return cmp.Or(t.print(all, lines...), err) // err says which overrides cannot be read
}

// changes returns the changes of an override as arguments of a directive.
func changes(v ratelimit.Override) string {
	var texts []string
	if v.Limit != nil {
		texts = append(texts, fmt.Sprint("limit=", *v.Limit))
	}
	if v.Factor != 0 {
		texts = append(texts, fmt.Sprint("factor=", v.Factor))
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
