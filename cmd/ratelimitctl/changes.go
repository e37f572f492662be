package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// shownChanges is how many changes are printed without -n.
const shownChanges = 20

// printChanges prints the newest changes, of one rule or of all.
func (t *tool) printChanges(ctx context.Context, args []string) error {
	all, err := t.fleet.Changes(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c fleet.Change) bool {
		return len(args) > 0 && fleet.SettingName(c.Rule) != fleet.SettingName(args[0])
	})
	if t.n < 0 {
		return misused("changes: -n: expected 1 or more")
	}
	all = all[:min(int64(len(all)), cmp.Or(t.n, shownChanges))]
	lines := [][]string{{"AT", "BY", "WHAT", "RULE", "KEY", "BEFORE → AFTER", "REASON"}}
	for i := range all {
		c := &all[i]
		c.Key = key.Shown(c.Key)
		lines = append(lines, []string{local(c.At), c.By, c.What, rulesInWords(c), keysInWords(c), changeInWords(c), c.Reason})
	}
	if len(all) == 0 {
		lines = [][]string{{"nothing was changed"}}
	}
	return t.print(append([]fleet.Change{}, all...), lines...)
}

func rulesInWords(c *fleet.Change) string {
	if c.Rules > 1 {
		return period.Count(int64(c.Rules), "rule")
	}
	return c.Rule
}

func keysInWords(c *fleet.Change) string {
	if c.Keys > 1 {
		return period.Count(int64(c.Keys), "key")
	}
	return c.Key
}

// changeInWords says what was set before and after a change, if it is one of a single setting, or what a give gave.
func changeInWords(c *fleet.Change) string {
	if c.Before == nil && c.After == nil {
		return c.Given()
	}
	values := func(s *fleet.Setting) *fleet.Values {
		if s == nil {
			return nil
		}
		return &s.Values
	}
	return fmt.Sprintf("%s → %s", valuesInWords(c.Kind, values(c.Before)), valuesInWords(c.Kind, values(c.After)))
}
