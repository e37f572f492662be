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

// edit is a change of settings by one command.
type edit struct {
	what     string
	settings []*fleet.Setting
	merge    func(before, s *fleet.Setting) error // fills a setting; before is what it replaces, or nil
}

// edited is a setting that a command changed, as JSON. The values are nil where nothing is set.
type edited struct {
	Rule   string        `json:"rule"`
	Key    string        `json:"key,omitempty"`
	Before *fleet.Values `json:"before"`
	After  *fleet.Values `json:"after"`

	kind fleet.Kind
}

// change makes an edit, prints what was and what is, and says when it is in force. The lines of more come last.
func (t *tool) change(ctx context.Context, e edit, more func(all []edited) ([][]string, error)) error {
	actor, err := t.actor()
	if err != nil {
		return err
	}
	before := map[string]*fleet.Setting{}
	var wrong error
	done, err := t.fleet.Change(ctx, fleet.Edit{Actor: actor, What: e.what, Settings: e.settings, Each: func(old, s *fleet.Setting) bool {
		before[s.Name()] = old
		wrong = e.merge(old, s)
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
	var all []edited
	for _, s := range e.settings { // as they were written
		all = append(all, editedOf(before[s.Name()], s))
	}
	where, err := t.whereInForce(ctx)
	if err != nil {
		return err
	}
	lines := t.editedLines(all)
	lines = append(lines, []string{where})
	if more != nil {
		last, err := more(all)
		if err != nil {
			return err
		}
		lines = append(lines, last...)
	}
	return t.print(all, t.withKept(lines)...)
}

func editedOf(before, after *fleet.Setting) edited {
	e := edited{Rule: after.Rule, kind: after.Kind}
	if !after.AllKeys {
		e.Key = key.Shown(after.Key)
	}
	if before != nil {
		e.Before = &before.Values
	}
	if !after.Cleared {
		e.After = &after.Values
	}
	return e
}

// shownEdits is how many keys of one command are printed.
const shownEdits = 20

func (t *tool) editedLines(all []edited) (lines [][]string) {
	for _, e := range all {
		before := valuesInWords(e.kind, e.Before)
		if e.Before == nil {
			before = t.nothing(before)
		}
		lines = append(lines, []string{fmt.Sprintf("%s: %s → %s", strings.TrimSpace(e.Rule+" "+e.Key), before, valuesInWords(e.kind, e.After))})
	}
	return firstKeys(lines)
}

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

// within says when all processes will follow, of which some do not yet.
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

// settingsOf returns a setting for each key under a rule name. For a key that is "", an override is for all keys.
func (t *tool) settingsOf(kind fleet.Kind, name string, rules []ratelimit.UsedRule, keys []string) (all []*fleet.Setting, err error) {
	rule := ratelimit.Rule{Name: name, Limit: 1, Per: time.Minute} // with -force
	if len(rules) > 0 {
		rule = rules[0].Rule
	}
	for _, k := range keys {
		s := &fleet.Setting{Kind: kind, Rule: settingName(name), AllKeys: kind == fleet.Override && k == ""}
		if !s.AllKeys {
			if s.Key, err = t.subject(ratelimit.Request{Rule: rule, Key: k}); err != nil {
				return nil, err
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// subject returns the subject of a request in the form of keys.
func (t *tool) subject(q ratelimit.Request) (string, error) {
	state, err := t.limiter.StateKey(q)
	parts, _ := key.Split(state)
	return parts.Subject, err
}
