package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// target returns who changes settings or counts, and whose. given is KEY or -key.
func (s *session) target(given string) (by fleet.Actor, t operate.Target, err error) {
	if by, err = s.actor(); err != nil {
		return by, t, err
	}
	keys, err := s.keysOf(given)
	if s.match != "" && (keys != nil || s.keys != "") {
		err = misused("found a key and -match; expected one of the two")
	}
	return by, operate.Target{Rule: s.arg(0), Keys: keys, Match: s.match, Shown: s.shown, Force: s.force}, err
}

// edit makes a change of settings by do, and prints what was and what is, and where that is in force.
func (s *session) edit(ctx context.Context, given string, do func(context.Context, fleet.Actor, operate.Target) (operate.Done, error)) error {
	by, t, err := s.target(given)
	if err != nil {
		return err
	}
	done, err := do(ctx, by, t)
	if err != nil {
		return err
	}
	where, err := s.whereInForce(ctx)
	if err != nil {
		return err
	}
	var lines [][]string
	for _, c := range done.Changed {
		before := withEnd(c.Kind, c.Before)
		if c.Before == nil {
			before = s.nothing(before)
		}
		lines = append(lines, []string{fmt.Sprintf("%s: %s → %s", strings.TrimSpace(c.Rule+" "+c.Key), before, withEnd(c.Kind, c.After))})
	}
	lines = append(firstKeys(lines), []string{where})
	for _, note := range done.Notes {
		lines = append(lines, []string{note})
	}
	return s.print(done.Changed, s.withLoss(lines)...)
}

// withEnd says what a setting does, and until when.
func withEnd(kind fleet.Kind, v *fleet.Values) string {
	return operate.Values(kind, v) + ending(kind, v)
}

func ending(kind fleet.Kind, v *fleet.Values) string {
	switch {
	case v == nil:
		return ""
	case !v.Until.IsZero():
		return " until " + operate.LocalTime(v.Until)
	case kind == fleet.Override:
		return " for ever"
	}
	return ""
}

// shownEdits is how many keys of one command are printed.
const shownEdits = 20

// firstKeys returns the first lines of those for many keys, and how many more there are.
func firstKeys(lines [][]string) [][]string {
	if more := len(lines) - shownEdits; more > 0 {
		lines = append(lines[:shownEdits], []string{"and " + operate.Count(more, "key") + " more"})
	}
	return lines
}

// waitAtMost is longer than a process that died counts as one.
var waitAtMost = 20 * time.Second

// whereInForce says where the newest setting is in force. With -wait, it waits until that is everywhere. Silent are processes that did not answer before.
func (s *session) whereInForce(ctx context.Context, silent ...fleet.Process) (string, error) {
	wait := time.Duration(0)
	if s.wait {
		wait = waitAtMost
	}
	f, err := s.prefix.Following(ctx, wait, silent...)
	if err == nil && s.wait && len(f.Behind) > 0 {
		err = fmt.Errorf("it is set, but %d of %s do not follow yet, such as %s", len(f.Behind), operate.Count(f.Processes, "process"), f.Behind[0].String())
	}
	return f.InWords(), err
}

func blockKeys(ctx context.Context, s *session) error { return s.begin(ctx, "block", s.prefix.Block) }

func unblockKeys(ctx context.Context, s *session) error {
	return s.edit(ctx, s.arg(1), s.prefix.Unblock)
}

func pauseKeys(ctx context.Context, s *session) error { return s.begin(ctx, "pause", s.prefix.Pause) }

func resumeKeys(ctx context.Context, s *session) error { return s.edit(ctx, s.arg(1), s.prefix.Resume) }

// begin makes a change that lasts for -for.
func (s *session) begin(ctx context.Context, command string,
	do func(context.Context, fleet.Actor, operate.Target, time.Duration) (operate.Done, error)) error {
	if s.forTime == 0 || s.forTime > operate.MaxBlock {
		return misused(fmt.Sprintf("%s: -for: expected how long, up to %s, as in -for 1h", command, operate.Duration(operate.MaxBlock)))
	}
	return s.edit(ctx, s.arg(1), func(ctx context.Context, by fleet.Actor, t operate.Target) (operate.Done, error) {
		return do(ctx, by, t, s.forTime)
	})
}

// setOverride sets an override, merged with what is set.
func setOverride(ctx context.Context, s *session) error {
	wish := operate.Wish{Limit: s.limit, Factor: s.factor, Per: s.per, Burst: s.burst, Mode: s.mode, For: s.forTime, Forever: s.forever, Replace: s.replace}
	err := s.edit(ctx, s.options.key, func(ctx context.Context, by fleet.Actor, t operate.Target) (operate.Done, error) {
		return s.prefix.Override(ctx, by, t, wish)
	})
	if errors.Is(err, operate.ErrEnd) {
		return misused("override set: the end is missing: write -for 1h, for example, or -forever")
	}
	return err
}

func clearOverride(ctx context.Context, s *session) error {
	return s.edit(ctx, s.options.key, s.prefix.ClearOverride)
}

// reset forgets what keys have used under the rules of a name.
func reset(ctx context.Context, s *session) error {
	by, t, err := s.target(s.arg(1))
	if err != nil {
		return err
	}
	n, err := s.prefix.Reset(ctx, by, t)
	if err != nil && n == 0 {
		return err
	}
	return cmp.Or(s.print(map[string]int{"forgotten": n}, []string{operate.Count(n, "count") + " forgotten"}), err)
}

// give returns permits to keys under the rules of a name, or takes some.
func give(ctx context.Context, s *session) error {
	if s.n == 0 {
		return misused("give: -n: expected how many permits, as in -n 50, or -n -50 to take them")
	}
	by, t, err := s.target(s.arg(1))
	if err != nil {
		return err
	}
	all, err := s.prefix.Give(ctx, by, t, s.n)
	if err != nil && len(all) == 0 {
		return err
	}
	var lines [][]string
	for _, g := range all {
		lines = append(lines, []string{strings.TrimSpace(g.Rule+" "+g.Key) + ": " + g.InWords()})
	}
	return cmp.Or(s.print(append([]operate.Given{}, all...), firstKeys(lines)...), err)
}

// printChanges prints the newest changes, of one rule or of all.
func printChanges(ctx context.Context, s *session) error {
	if s.n < 1 {
		return misused(fmt.Sprintf("changes: -n: found %d; expected how many changes, at least 1, as in -n 50", s.n))
	}
	all, at := s.prefix.Changes(ctx, s.arg(0))
	if err := cmp.Or(at.Err, s.checkNamed(ctx, len(all))); err != nil {
		return err
	}
	all = all[:min(int64(len(all)), s.n)]
	return printTable(s.output, all, "nothing was changed", "AT, BY, WHAT, RULE, KEY, BEFORE → AFTER, REASON", func(c *fleet.Change) []string {
		what := operate.ChangeInWords(c, func(v *fleet.Values) string { return ending(c.Kind, v) })
		return []string{operate.LocalTime(c.At), c.By, c.What, several(c.Rules, "rule", c.Rule), several(c.Keys, "key", c.Key), what, c.Reason}
	})
}

// several says how many there are, or names the only one.
func several(n int, what, one string) string {
	if n > 1 {
		return operate.Count(n, what)
	}
	return one
}
