package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
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
	Keys   int       `json:"keys,omitempty"`  // how many settings changed, if that is more than one
	Rules  int       `json:"rules,omitempty"` // of how many rules, if that is more than one; Rule is the first
	Kind   Kind      `json:"kind,omitempty"`  // of the setting, if one changed
	Before *Setting  `json:"before,omitempty"`
	After  *Setting  `json:"after,omitempty"`

	Permits int64  `json:"permits,omitempty"` // that a give gave to each key, or took if it is negative
	For     string `json:"for,omitempty"`     // how long a pause beside a count lasts, as in directives
}

// Given says what a give gave or took, or how long a pause beside a count lasts. It is "" for other changes.
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
	// false, nothing is written. If others write at the same time, it is called again. Each may be nil.
	Each     func(before, s *Setting) bool
	replaced bool // the settings are all that hold: see Import
}

// Change makes an edit for all processes, and reports whether it did. This process follows at once.
func (f *Fleet) Change(ctx context.Context, e Edit) (done bool, err error) {
	return alone(ctx, f, func() (bool, error) {
		if _, err := f.clock(ctx); err != nil {
			return false, err
		}
		for try := 1; ; try++ {
			done, sent, err := f.try(ctx, &e)
			if err != nil || sent {
				return done, err
			}
			select { // another process wrote
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(rand.N(time.Duration(min(try, 20)) * 2 * time.Millisecond)):
			}
		}
	})
}

// try makes an edit, unless another process changes settings meanwhile. It reports whether the edit was to be made, and whether it was sent.
func (f *Fleet) try(ctx context.Context, e *Edit) (done, sent bool, err error) {
	var w *writing
	write := func(do Do) ([]Command, error) {
		err := f.refresh(ctx, do)
		if err != nil {
			return nil, err
		}
		if w, err = f.plan(e); err != nil || w == nil || f.server == nil {
			return nil, err
		}
		return w.commands(f), nil
	}
	if f.server == nil {
		_, err = write(nil)
		sent = true
	} else {
		sent, err = f.server.Try(ctx, f.keys.version, write)
	}
	if err != nil || !sent || w == nil {
		return false, sent, err
	}
	f.commit(w)
	return true, true, nil
}

// writing is an edit as it is written.
type writing struct {
	epoch    string
	version  int64 // of the last setting
	settings []*Setting
	after    map[string]*Setting // all that this process then knows
	over     []string            // names to remove
	note     *Change             // or nil
	life     time.Duration
}

// plan plans an edit of the settings that are known. It returns nil if nothing is to be written.
func (f *Fleet) plan(e *Edit) (*writing, error) {
	k, now := &f.changed, f.Now().UTC().Truncate(time.Millisecond)
	w := &writing{epoch: cmp.Or(k.epoch, newID()), version: k.version, after: maps.Clone(k.settings)}
	edited := e.Settings
	if e.replaced {
		w.epoch, edited = strconv.FormatInt(now.UnixMilli(), 10)+"."+newID(), f.merge(e.Settings, now)
		maps.DeleteFunc(w.after, func(_ string, s *Setting) bool { return s.lost })
	}
	for i, s := range edited {
		before := k.settings[s.Name()]
		if before != nil && !before.holds(now) {
			before = nil
		}
		s = s.copy()
		if e.Each != nil && !e.Each(before, s) {
			return nil, nil
		}
		s.Until = f.instant(s.Until)
		w.version++
		s.version = w.version
		if !e.replaced {
			s.At, s.By, s.Reason = now, cmp.Or(e.Actor.By, s.By), e.Actor.Reason
		}
		if e.For > 0 {
			s.Until = now.Add(e.For)
		}
		if _, err := s.text(); err != nil {
			return nil, err
		}
		edited[i], w.after[s.Name()] = s, s
	}
	w.settings, w.over = edited, slices.Collect(maps.Keys(k.over))
	if err := w.fit(k.settings, e, now); err != nil {
		return nil, err
	}
	w.note = e.note(k.settings, w.settings, now)
	return w, nil
}

// fit checks the number of settings. It finds the time until which they matter.
func (w *writing) fit(before map[string]*Setting, e *Edit, now time.Time) error {
	most := MaxSettings
	if e.Actor.By == "" {
		most = MaxByProgram
	}
	if held := count(w.after, now); held > most && held > count(before, now) {
		return &Unfit{fmt.Sprintf("found %d overrides, blocks and pauses; expected at most %d", held, most)}
	}
	forever, last := false, now
	for _, s := range w.after {
		switch since := s.deadSince(); {
		case since.IsZero():
			forever = true
		case since.After(last):
			last = since
		}
	}
	if !forever {
		w.life = last.Add(2 * deadLife).Sub(now)
	}
	return nil
}

// count returns how many settings hold.
func count(all map[string]*Setting, now time.Time) (n int) {
	for _, s := range all {
		if s.holds(now) {
			n++
		}
	}
	return n
}

// commands are those of the transaction that writes the edit. What is over is removed first, because the edit may set it again.
func (w *writing) commands(f *Fleet) []Command {
	all := []Command{{"SET", f.keys.version, w.version}, {"SET", f.keys.epoch, w.epoch}}
	for some := range slices.Chunk(w.over, perCommand) {
		all = append(all, command("HDEL", f.keys.settings, some...), command("ZREM", f.keys.versions, some...))
	}
	for some := range slices.Chunk(w.settings, perCommand) {
		set, add := Command{"HSET", f.keys.settings}, Command{"ZADD", f.keys.versions}
		for _, s := range some {
			text, _ := s.text() // plan has checked it
			set = append(set, s.Name(), text)
			add = append(add, s.version, s.Name())
		}
		all = append(all, set, add)
	}
	if w.note != nil {
		all = append(all, f.noting(w.note)...)
	}
	for _, key := range f.keys.ofSettings() {
		if w.life > 0 {
			all = append(all, Command{"PEXPIRE", key, w.life.Milliseconds()})
		} else {
			all = append(all, Command{"PERSIST", key})
		}
	}
	return all
}

// commit makes this process follow what was written.
func (f *Fleet) commit(w *writing) {
	k := &f.changed
	for _, s := range w.settings {
		delete(k.malformed, s.Name())
	}
	k.epoch, k.version, k.settings, k.imported = w.epoch, w.version, w.after, max(k.imported, importTime(w.epoch))
	clear(k.over)
	if f.server == nil && w.note != nil {
		f.noteHere(w.note)
	}
	f.enforce()
}

// noteHere notes a change of a store in this process.
func (f *Fleet) noteHere(c *Change) {
	f.done = slices.Insert(f.done, 0, *c)
	f.done = f.done[:min(len(f.done), MaxChanges)]
}

// Import replaces the settings of all processes by those of the store and the given ones. Of two for the same rule and key, the newer holds. It
// ends the state in which processes keep settings that the store has lost.
func (f *Fleet) Import(ctx context.Context, by Actor, settings []*Setting) error {
	_, err := f.Change(ctx, Edit{Actor: by, What: "import", Settings: settings, replaced: true})
	return err
}

// merge returns the settings of the store and the given ones.
func (f *Fleet) merge(given []*Setting, now time.Time) []*Setting {
	all := map[string]*Setting{}
	for _, s := range f.changed.settings {
		if !s.lost && s.holds(now) {
			all[s.Name()] = s
		}
	}
	for _, s := range given {
		if before := all[s.Name()]; s.holds(now) && (before == nil || s.At.After(before.At)) {
			all[s.Name()] = s
		}
	}
	return slices.SortedFunc(maps.Values(all), Compare)
}

// note returns the change for people, or nil if there is no actor.
func (e *Edit) note(before map[string]*Setting, after []*Setting, now time.Time) *Change {
	if e.Actor.By == "" {
		return nil
	}
	c := &Change{At: now, By: e.Actor.By, Reason: e.Actor.Reason, What: e.What}
	if len(after) > 0 {
		c.Rule, c.Key = after[0].Rule, after[0].Key
	}
	switch {
	case len(after) > 1:
		c.Keys, c.Rules = len(after), countRules(after)
	case len(after) == 1:
		c.Kind = after[0].Kind
		if c.Before = before[after[0].Name()]; c.Before != nil && !c.Before.holds(now) {
			c.Before = nil
		}
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

// Changes returns the newest changes, the last one first.
func (f *Fleet) Changes(ctx context.Context) ([]Change, error) {
	return alone(ctx, f, func() (all []Change, err error) {
		if f.server == nil {
			return slices.Clone(f.done), nil
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
	})
}

// PauseOf returns the change that made the pause beside a count of a key, which ends at until. It returns nil if none of the changes, the newest
// of which comes first, did. A change of several keys names only the first of them, so it counts if the end fits.
func PauseOf(changes []Change, rule, subject string, until time.Time) *Change {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.What != "pause" && c.What != "resume", c.Rule != rule, c.Key != subject && c.Keys < 2:
		case c.pausesUntil(until):
			return c
		case c.Key == subject:
			return nil
		}
	}
	return nil
}

// pausesUntil reports whether a pause beside a count ends at a time. It begins shortly before its change is noted.
func (c *Change) pausesUntil(until time.Time) bool {
	d, _, err := period.Parse("for", c.For)
	return err == nil && c.At.Add(d).Sub(until).Abs() < 5*time.Second
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
