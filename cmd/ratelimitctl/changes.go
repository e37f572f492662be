package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// printChanges prints the newest changes, of one rule or of all.
func (t *tool) printChanges(ctx context.Context, args []string) error {
	if t.n < 1 {
		return misused(fmt.Sprintf("changes: -n: found %d; expected how many changes, at least 1, as in -n 50", t.n))
	}
	all, err := t.fleet.Changes(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c fleet.Change) bool {
		return len(args) > 0 && fleet.SettingName(c.Rule) != fleet.SettingName(args[0])
	})
	all = all[:min(int64(len(all)), t.n)]
	for i := range all {
		all[i].Key = key.Shown(all[i].Key)
	}
	return printTable(t, all, "nothing was changed", "AT, BY, WHAT, RULE, KEY, BEFORE → AFTER, REASON", func(c *fleet.Change) []string {
		return []string{local(c.At), c.By, c.What, several(c.Rules, "rule", c.Rule), several(c.Keys, "key", c.Key), changeInWords(c), c.Reason}
	})
}

// several says how many there are, or names the only one.
func several(n int, what, one string) string {
	if n > 1 {
		return period.Count(int64(n), what)
	}
	return one
}

// changeInWords says what was set before and after a change of one setting, or what a give gave.
func changeInWords(c *fleet.Change) string {
	if c.Before == nil && c.After == nil {
		return c.Given()
	}
	return fmt.Sprintf("%s → %s", valuesInWords(c.Kind, valuesOf(c.Before)), valuesInWords(c.Kind, valuesOf(c.After)))
}
