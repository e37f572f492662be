package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// settingWords are how settings of a kind are shown.
var settingWords = map[fleet.Kind]struct{ set, unset string }{
	fleet.Override: {"", "no override"},
	fleet.Block:    {"blocked", "not blocked"},
	fleet.Pause:    {"paused", "not paused"},
}

// edited is a setting that a command changed, as JSON. The values are nil where nothing is set.
type edited struct {
	Kind   fleet.Kind    `json:"kind"`
	Rule   string        `json:"rule"`
	Key    string        `json:"key,omitempty"` // as errors show it
	Before *fleet.Values `json:"before"`
	After  *fleet.Values `json:"after"`
}

// changeOverrides changes overrides, each of which merge fills. Before is what an override replaces, or nil.
func (t *tool) changeOverrides(ctx context.Context, what string, all []*fleet.Setting, merge func(before, s *fleet.Setting) error) error {
	actor, err := t.actor()
	if err != nil {
		return err
	}
	before := map[string]*fleet.Setting{}
	var wrong error
	done, err := t.fleet.Change(ctx, fleet.Edit{Actor: actor, What: what, Settings: all, Each: func(old, s *fleet.Setting) bool {
		before[s.Name()] = old
		wrong = merge(old, s)
		return wrong == nil
	}})
	switch {
	case wrong != nil:
		return wrong
	case err != nil:
		return err
	case !done:
		return errors.New("nothing was changed")
	}
	var rows []edited
	for _, s := range all { // as they were written
		rows = append(rows, edited{s.Kind, s.Rule, key.Shown(s.Key), valuesOf(before[s.Name()]), valuesOf(s)})
	}
	return t.printEdited(ctx, rows)
}

// valuesOf returns what a setting sets, or nil if nothing is set.
func valuesOf(s *fleet.Setting) *fleet.Values {
	if s == nil || s.Cleared {
		return nil
	}
	return &s.Values
}

// printEdited prints what was and what is, where that is in force, and notes.
func (t *tool) printEdited(ctx context.Context, all []edited, notes ...[]string) error {
	where, err := t.whereInForce(ctx)
	if err != nil {
		return err
	}
	var lines [][]string
	for _, e := range all {
		before := valuesInWords(e.Kind, e.Before)
		if e.Before == nil {
			before = t.nothing(before)
		}
		lines = append(lines, []string{fmt.Sprintf("%s: %s → %s", strings.TrimSpace(e.Rule+" "+e.Key), before, valuesInWords(e.Kind, e.After))})
	}
	lines = append(firstKeys(lines), []string{where})
	return t.print(all, t.withKept(append(lines, notes...))...)
}

// shownEdits is how many keys of one command are printed.
const shownEdits = 20

// firstKeys returns the first lines of those for many keys, and how many more there are.
func firstKeys(lines [][]string) [][]string {
	if more := len(lines) - shownEdits; more > 0 {
		lines = append(lines[:shownEdits], []string{fmt.Sprintf("and %s more", period.Count(int64(more), "key"))})
	}
	return lines
}

// valuesInWords says what a setting says: its changes as in directives, and its end. It does not say who set it, and why.
func valuesInWords(kind fleet.Kind, v *fleet.Values) string {
	if v == nil {
		return settingWords[kind].unset
	}
	text := strings.TrimSpace(settingWords[kind].set + " " + arguments(v))
	if !v.Until.IsZero() {
		text += " until " + local(v.Until)
	} else if kind == fleet.Override {
		text += " for ever"
	}
	return text
}

// arguments returns what an override changes, as arguments of a directive.
func arguments(v *fleet.Values) string {
	var texts []string
	for name, value := range v.Arguments() {
		texts = append(texts, fmt.Sprint(name, "=", value))
	}
	return strings.Join(texts, " ")
}

const (
	inForceWithin = 2 * time.Second // what a beat promises
	waitEvery     = 100 * time.Millisecond
)

// waitAtMost is longer than a process that died counts as one.
var waitAtMost = 20 * time.Second

// whereInForce says where the newest setting is in force. With -wait, it waits until that is everywhere.
func (t *tool) whereInForce(ctx context.Context) (string, error) {
	for deadline := time.Now().Add(waitAtMost); ; {
		all, behind, err := t.fleet.Behind(ctx)
		switch {
		case err != nil:
			return "", fmt.Errorf("it is set, but the processes cannot be read: %w", err)
		case len(all) == 0:
			return "no process reports now; those that start, or reach the server again, follow it", nil
		case len(behind) == 0:
			return "in force in " + period.Count(int64(len(all)), "process"), nil
		case t.wait && time.Now().After(deadline):
			return "", fmt.Errorf("it is set, but %d of %s do not follow yet, such as %s", len(behind), period.Count(int64(len(all)), "process"), processInWords(&behind[0]))
		case !t.wait:
			return within(behind), nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(waitEvery):
		}
	}
}

// within says when all processes will follow. Some do not follow yet.
func within(behind []fleet.Process) string {
	for _, p := range behind {
		if p.Setting != "" {
			return "not everywhere in force soon: a process cannot read settings: " + processInWords(&p)
		}
	}
	return "in force everywhere within " + words(inForceWithin)
}

func processInWords(p *fleet.Process) string {
	text := fmt.Sprintf("%s %d on %s", p.Program, p.PID, p.Host)
	if p.Setting != "" {
		text += ": " + p.Setting
	}
	return text
}

// subject returns the subject of a request in the form of keys.
func (t *tool) subject(q ratelimit.Request) (string, error) {
	states, err := t.limiter.StateKeys(q)
	if err != nil {
		return "", err
	}
	parts, _ := key.Split(states[0])
	return parts.Subject, nil
}
