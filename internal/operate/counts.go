package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Given is what a key has left before and after permits were given to it. If its limit comes with each call, Computed is true, and both are minus what
// is used.
type Given struct {
	Rule     string `json:"rule"`
	Key      string `json:"key,omitempty"` // as errors show it
	Before   int64  `json:"before"`
	After    int64  `json:"after"`
	Computed bool   `json:"computed,omitempty"`
}

// InWords says what was given: "3 → 10 permits left".
func (g Given) InWords() string {
	before, after, what := g.Before, g.After, "left"
	if g.Computed {
		before, after, what = -before, -after, "used"
	}
	return fmt.Sprintf("%s → %s %s", Number(before), Count(after, "permit"), what)
}

// Give returns permits to keys, or takes some if n is below 0. It goes on after a key that fails, and returns what it gave together with the errors.
func (p *Prefix) Give(ctx context.Context, by fleet.Actor, t Target, n int64) (all []Given, err error) {
	var unknown error
	change := fleet.Change{What: "give", Permits: n}
	err = p.changeCounts(ctx, by, t, change, func(ctx context.Context, l *ratelimit.Limiter, q ratelimit.Request, k Key) error {
		before, err := p.useOf(ctx, q, k)
		if err == nil {
			err = l.Give(ctx, n, q)
		}
		if e, is := errors.AsType[*ratelimit.RuleError](err); is && e.Argument == "every" {
			return Wrong("no window is open, and the tool does not know the anchor of the key: wait for its next call")
		}
		if err != nil {
			return err
		}
		after, err := p.useOf(ctx, q, k)
		if err != nil {
			unknown = fmt.Errorf("%s %s: the permits are given, and what is left is unknown: %w", q.Rule.Name, keyInWords(before.Key), err)
			return nil
		}
		all = append(all, Given{q.Rule.Name, before.Key, before.Left(), after.Left(), before.Limit < 0})
		return nil
	})
	return all, printable.Join(err, unknown)
}

// useOf returns what the key of a request uses of one rule, and what refuses it.
func (p *Prefix) useOf(ctx context.Context, q ratelimit.Request, k Key) (Use, error) {
	uses, err := p.Inspect(ctx, k, ratelimit.UsedRule{Rule: q.Rule})
	if err != nil {
		return Use{}, err
	}
	return uses[0], uses[0].Err
}

// Reset forgets what keys have used, and returns how many counts there were. It goes on after a key that fails.
func (p *Prefix) Reset(ctx context.Context, by fleet.Actor, t Target) (forgotten int, err error) {
	err = p.changeCounts(ctx, by, t, fleet.Change{What: "reset"}, func(ctx context.Context, l *ratelimit.Limiter, q ratelimit.Request, _ Key) error {
		n, err := l.Reset(ctx, q)
		forgotten += n
		return err
	})
	return forgotten, err
}

// changeCounts changes the counts of a target by do, and notes one change for all that do changed.
func (p *Prefix) changeCounts(ctx context.Context, by fleet.Actor, t Target, change fleet.Change,
	do func(context.Context, *ratelimit.Limiter, ratelimit.Request, Key) error) error {
	if err := checkActor(by); err != nil {
		return err
	}
	if t.Match != "" || fleet.IsGlob(t.Rule) {
		return Wrong("only settings can be for many keys or rules: name a rule and a key")
	}
	rules, err := p.Named(ctx, t.Rule)
	if err != nil {
		return err
	}
	all, err := p.requestsOf(ctx, &t, rules)
	if err != nil {
		return err
	}
	if at := p.Follow(ctx); at.Err != nil { // an override may change the window
		return at.Err
	}
	var failed []error
	changed, subject := 0, ""
	for _, of := range all {
		for _, q := range of.requests {
			shown := p.subjectOf(q.Rule, of.key)
			if err := do(ctx, p.limiterFor(of.key), q, of.key); err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", q.Rule.Name, keyInWords(shown), err))
				continue
			}
			changed, subject = changed+1, shown
		}
	}
	if err = joined(failed, changed); changed > 0 {
		change.By, change.Reason, change.Rule = by.By, by.Reason, t.Rule
		if change.Key = subject; changed > 1 {
			change.Key, change.Keys = "", changed
		}
		if unnoted := p.fleet.Note(ctx, change); unnoted != nil {
			err = printable.Join(err, fmt.Errorf("it is done, but not noted in changes: %w", unnoted))
		}
	}
	p.forget()
	return err
}

// joined returns errors as one, in one line, that says how many changes were made besides.
func joined(failed []error, done int) error {
	const most = 3
	err := printable.Join(failed[:min(len(failed), most)]...)
	if more := len(failed) - most; more > 0 {
		err = fmt.Errorf("%w; and %d more", err, more)
	}
	switch {
	case err == nil:
	case done > 0:
		err = fmt.Errorf("%s of %s failed, and the others are done: %w", Number(int64(len(failed))), Count(len(failed)+done, "count"), err)
	case len(failed) > 1:
		err = fmt.Errorf("%s failed: %w", Count(len(failed), "count"), err)
	}
	return err
}

// Changes returns the newest changes under a rule, or of all rules for "", the last one first. Their keys are as errors show them.
func (p *Prefix) Changes(ctx context.Context, rule string) (all []fleet.Change, at Seen) {
	found, at := p.changes.Get(ctx)
	for _, c := range found {
		if rule == "" || fleet.Covers(fleet.SettingName(c.Rule), fleet.SettingName(rule)) {
			c.Key = key.Shown(c.Key)
			all = append(all, c)
		}
	}
	return all, at
}

// ChangeInWords says what was set before and after a change of one setting, or what a change of counts did: "not blocked → blocked".
func ChangeInWords(c *fleet.Change, until func(*fleet.Values) string) string {
	if c.Before == nil && c.After == nil {
		return c.Given()
	}
	side := func(s *fleet.Setting) string { return Values(c.Kind, valuesOf(s)) + until(valuesOf(s)) }
	return side(c.Before) + " → " + side(c.After)
}

// Undoable identifies the newest of all changes, if Undo can undo it. It is "" if what held before is unknown.
func Undoable(all []fleet.Change) string {
	if len(all) == 0 {
		return ""
	}
	c := &all[0]
	if c.Kind == "" || c.Before == nil && c.After == nil || slices.Contains([]string{"undo", "import", "recover"}, c.What) {
		return ""
	}
	return c.At.Format("20060102150405.000") + " " + c.What + " " + c.By
}

// Undo brings back what was in force before the newest change, which id identifies. What a program has set since stays, though no list has it. It is an
// error if that has ended meanwhile, or if nothing was in force and the change itself has ended.
func (p *Prefix) Undo(ctx context.Context, by fleet.Actor, id string) (Changed, error) {
	p.changes.forget()
	all, at := p.changes.Get(ctx)
	if at.Err != nil {
		return Changed{}, at.Err
	}
	if id == "" || Undoable(all) != id {
		return Changed{}, Wrong("there was another change since; look at the list again")
	}
	last := &all[0]
	s := &fleet.Setting{Kind: last.Kind, Rule: last.Rule, Key: last.Key, Match: last.Match, AllKeys: last.Kind == fleet.Override && last.Key == ""}
	if s.Cleared = last.Before == nil; !s.Cleared { // others may read what was before
		s.Values = last.Before.Values
	}
	var wrong error
	err := p.change(ctx, fleet.Edit{Actor: by, What: "undo", Settings: []*fleet.Setting{s}, Each: func(now, _ *fleet.Setting) bool {
		switch wrong = nil; { // it may be called again
		case !p.isStill(last.After, now):
			wrong = Wrong("it was changed again since, perhaps by a program, whose changes are not listed: look at what is in force")
		case !s.Cleared && s.EndedAt(p.Now()):
			wrong = Wrong("what held before ended at " + LocalTime(s.Until) + ", so nothing is changed")
		case s.Cleared && now == nil:
			wrong = Wrong("what was set ended at " + LocalTime(last.After.Until) + ", so nothing is changed")
		}
		return wrong == nil
	}})
	switch {
	case wrong != nil:
		return Changed{}, wrong
	case err == nil && s.Kind == fleet.Pause && last.After != nil:
		err = p.endMarks(ctx, s)
	}
	return Changed{s.Kind, s.Rule, key.Shown(s.Key), s.Match, valuesOf(last.After), valuesOf(s)}, err
}

// isStill reports whether a setting is in force as a change made it, or none if that has ended. Either may be nil.
func (p *Prefix) isStill(made, now *fleet.Setting) bool {
	if made == nil || made.EndedAt(p.Now()) {
		return now == nil
	}
	return now != nil && now.At.Equal(made.At)
}

// endMarks ends the pauses beside the counts of the key of a pause: where rules are Pausable, the pause of an actor is there, too.
func (p *Prefix) endMarks(ctx context.Context, s *fleet.Setting) error {
	rules, at := p.rules.Get(ctx)
	if at.Err != nil {
		return at.Err
	}
	marks := p.machine().Change(engine.Repauses)
	for _, r := range rules {
		if !r.Pausable || s.Match || fleet.IsGlob(s.Rule) || !isNamed(r.Name, s.Rule) {
			continue
		}
		rule, err := prepared(r.Rule)
		if err != nil {
			return err
		}
		for _, count := range p.machine().InForce(rule, s.Key, s.Key).Counts() {
			claim := count.ClaimOn(s.Key, count.LimitFor(count.MostLimit))
			claim.Delta = -1
			marks.Put(count, claim)
		}
	}
	if len(marks.Claims) == 0 {
		return nil
	}
	return marks.Adjust(ctx)
}
