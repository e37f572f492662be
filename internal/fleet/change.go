package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Actor is who makes a change, and why. A program that changes something by itself is the zero Actor.
type Actor struct{ By, Reason string }

// Change tells people of one command that changed settings or counts. It is a claim of its actor, no proof.
type Change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	What   string    `json:"what"` // such as set, clear, block
	Rule   string    `json:"rule,omitempty"`
	Key    string    `json:"key,omitempty"`
	Match  bool      `json:"match,omitempty"` // Key is a pattern of keys
	Keys   int       `json:"keys,omitempty"`  // how many settings changed, if that is more than one
	Rules  int       `json:"rules,omitempty"` // of how many rules, if that is more than one; Rule is the first
	Kind   Kind      `json:"kind,omitempty"`  // of the setting, if one changed
	Before *Setting  `json:"before,omitempty"`
	After  *Setting  `json:"after,omitempty"`

	Permits int64  `json:"permits,omitempty"` // that a give gave to each key, or took if it is negative
	For     string `json:"for,omitempty"`     // how long a pause lasts that a far side asked for, as in directives
	FarSide bool   `json:"farSide,omitempty"` // a far side asked for the pause, the longest of which lasts For; By is the process: see Process.String
}

// Given says what a give gave or took, or how long a pause lasts that a far side asked for. It is "" for other changes.
func (c Change) Given() string {
	switch {
	case c.For != "":
		return "for " + c.For
	case c.Permits > 0:
		return period.Count(c.Permits, "permit") + " given"
	case c.Permits < 0:
		return period.Count(-c.Permits, "permit") + " taken"
	}
	return ""
}

// Edit is a change of settings.
type Edit struct {
	Actor    Actor
	What     string
	For      time.Duration // how long the settings hold; 0 leaves their ends
	Settings []*Setting    // each replaces the one of its kind, rule and key; a cleared one leaves none. Change sets them to what it wrote
	// Each is called for each setting s, and may change it. before is the setting that s replaces, or nil if none is in force. If Each returns
	// false, nothing more is written. It may be called several times for a setting, and the last time counts. Each may be nil.
	Each     func(before, s *Setting) bool
	replaced bool // the settings are all that hold: see Import
}

// noteHere notes a change of a store in this process.
func (f *Fleet) noteHere(c *Change) {
	f.done = append(f.done, *c)
	f.done = f.done[max(0, len(f.done)-MaxChanges):]
}

// note returns the change for people, or nil if there is no actor. before is what the first setting replaced, or nil.
func (e *Edit) note(before *Setting, after []*Setting, now time.Time) *Change {
	if e.Actor.By == "" {
		return nil
	}
	c := &Change{At: now, By: e.Actor.By, Reason: e.Actor.Reason, What: e.What}
	if len(after) > 0 {
		c.Rule, c.Key, c.Match = after[0].Rule, after[0].Key, after[0].Match
	}
	switch {
	case len(after) > 1:
		c.Keys, c.Rules = len(after), countRules(after)
	case len(after) == 1:
		c.Kind, c.Before = after[0].Kind, before
		if !after[0].Cleared {
			c.After = after[0]
		}
	}
	return c
}

// countRules returns of how many rules settings are, or 0 if that is one.
func countRules(all []*Setting) int {
	names := map[string]bool{}
	for _, s := range all {
		names[s.Rule] = true
	}
	if len(names) == 1 {
		return 0
	}
	return len(names)
}

// text returns the change as the store has it. If it is too long, it lacks what was before and after, and less is said of who and why.
func (c Change) text() string {
	text, _ := json.Marshal(c) // its times have been marshaled before
	for most := MaxSaid; len(text) > MaxText && most > 0; most /= 2 {
		c.Before, c.After = nil, nil
		c.By, c.Reason = printable.Text(c.By, most), printable.Text(c.Reason, most)
		text, _ = json.Marshal(c)
	}
	return string(text)
}

// Note adds a change that is none of settings. Without an actor it adds nothing.
func (f *Fleet) Note(ctx context.Context, c Change) error {
	if c.By == "" {
		return nil
	}
	_, err := alone(ctx, f, func() (_ struct{}, err error) {
		now, err := f.clock(ctx)
		if err != nil {
			return
		}
		c.At = now.UTC().Truncate(time.Millisecond)
		if f.server == nil {
			f.noteHere(&c)
			return
		}
		_, err = f.do(ctx, f.noting(&c)...)
		return
	})
	return err
}

func (f *Fleet) noting(c *Change) []Command {
	return []Command{
		{"LPUSH", f.keys.changes, c.text()}, {"LTRIM", f.keys.changes, 0, MaxChanges - 1}, {"PEXPIRE", f.keys.changes, changesLife.Milliseconds()},
	}
}

// Changes returns the newest changes, the last one first, with those that far sides asked for.
func (f *Fleet) Changes(ctx context.Context) ([]Change, error) {
	return beside(ctx, f, func() ([]Change, error) {
		all, err := f.ownChanges(ctx)
		if err != nil {
			return nil, err
		}
		far, err := f.farChanges(ctx)
		all = append(all, far...)
		if len(far) > 0 {
			slices.SortStableFunc(all, func(a, b Change) int { return b.At.Compare(a.At) })
		}
		return all[:min(len(all), MaxChanges)], err
	})
}

// ownChanges returns the changes by actors.
func (f *Fleet) ownChanges(ctx context.Context) (all []Change, err error) {
	if f.server == nil {
		all = slices.Clone(f.done)
		slices.Reverse(all)
		return all, nil
	}
	for from := 0; from < MaxChanges; from += perCommand {
		replies, err := f.do(ctx, Command{"LRANGE", f.keys.changes, from, from + perCommand - 1})
		if err != nil {
			return nil, err
		}
		found := texts(replies[0])
		for _, text := range found {
			if c, err := parseChange(text); err == nil {
				all = append(all, c)
			}
		}
		if len(found) < perCommand {
			break
		}
	}
	return all, nil
}

// parseChange parses a change of the store.
func parseChange(text string) (c Change, err error) {
	err = decode(text, &c, false)
	for _, s := range []*Setting{c.Before, c.After} {
		if s != nil {
			s.Kind = c.Kind
		}
	}
	return c, err
}

// MaxSaid bounds the name of an actor and a reason, in bytes.
const MaxSaid = 200

// Check returns what is wrong with an actor, or "".
func (a Actor) Check() string {
	for _, text := range []string{a.By, a.Reason} {
		if len(text) > MaxSaid || !utf8.ValidString(text) {
			return fmt.Sprintf("found %d bytes; expected at most %d of UTF-8: %s", len(text), MaxSaid, printable.Text(text, 32))
		}
	}
	return ""
}
