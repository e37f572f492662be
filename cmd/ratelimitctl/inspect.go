package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// inspected is what is in force for a key under a rule, why, and what it has used, as JSON.
type inspected struct {
	Rule         string            `json:"rule"`
	Key          string            `json:"key,omitempty"`
	rulelist.Row                   // in force; its own Rule and Key are hidden
	AsOf         time.Time         `json:"limitAsOf,omitzero"`         // when a process said that the last call brought this limit
	Computed     bool              `json:"computed,omitempty"`         // calls bring the limit
	Declared     *rulelist.Row     `json:"declared,omitempty"`         // if something else is in force
	Limits       map[int64]int     `json:"processesByLimit,omitempty"` // if processes declare different limits
	Overrides    []setting         `json:"overrides,omitempty"`        // that apply to the key
	Refusals     []operate.Refusal `json:"refusals,omitempty"`         // blocks and pauses of the key
	Used         int64             `json:"used"`
	Capacity     *int64            `json:"capacity,omitempty"` // permits that the key can have at once: the limit, or the burst of a bucket; nil if calls bring it
	Remaining    *int64            `json:"remaining,omitempty"`
	Counted      bool              `json:"counted"` // the store has a count for the key
	ResetIn      string            `json:"resetIn,omitempty"`
	RetryAfter   string            `json:"retryAfter,omitempty"`
	Last         []permits         `json:"lastPermits,omitempty"` // the newest last
	Waiting      []place           `json:"waiting,omitempty"`
	Ahead        []place           `json:"ahead,omitempty"` // permits that leases took
	Free         []place           `json:"free,omitempty"`
	Running      []running         `json:"running,omitempty"`

	use *operate.Use
}

// permits were admitted at a time.
type permits struct {
	At      time.Time `json:"at"`
	Permits int64     `json:"permits"`
}

// place is a number of permits for a future time.
type place struct {
	In      string `json:"in"`
	Permits int64  `json:"permits"`
}

// running are the permits of a call that runs.
type running struct {
	Permits int64  `json:"permits"`
	EndsIn  string `json:"endsIn,omitempty"`  // if its process is gone; "" if they end with the process
	Process string `json:"process,omitempty"` // whose they are, if that is known
}

// shownPermits is how many of the last permits are shown.
const shownPermits = 5

// inspect shows a key under the rules of a name, or under all rules.
func inspect(ctx context.Context, s *session) error {
	rules, k, err := s.inspectedBy(ctx)
	if err != nil {
		return err
	}
	uses, err := s.prefix.Inspect(ctx, k, rules...)
	if err != nil {
		return err
	}
	var rows []inspected
	var notes [][]string
	for i := range uses {
		if uses[i].Err != nil {
			return uses[i].Err
		}
		row := s.inspected(&uses[i])
		rows = append(rows, row)
		for _, note := range row.notes(s.prefix.Now()) {
			notes = append(notes, []string{row.Rule + ", " + operate.Limit(row.use.InForce) + ": " + note})
		}
	}
	return printTable(s.output, rows, "", "RULE, LIMIT, MODE, USED, REMAINING, RESET IN, RETRY AFTER", func(r *inspected) []string {
		again := r.RetryAfter
		if r.use.Never && r.use.InForce.Mode == ratelimit.ModeEnforce {
			again = "never"
		}
		return []string{r.Rule, operate.Limit(r.use.InForce), r.use.InForce.Mode.String(), r.used(), r.left(), r.ResetIn, again}
	}, s.withLoss(notes)...)
}

// inspectedBy returns the rules of the name RULE, or with -all every rule, and KEY.
func (s *session) inspectedBy(ctx context.Context) (rules []ratelimit.UsedRule, k operate.Key, err error) {
	if k = (operate.Key{Text: s.arg(1), Shown: s.shown}); !s.all {
		rules, err = s.prefix.Named(ctx, s.arg(0))
		for _, r := range rules {
			err = cmp.Or(err, operate.NeedsKey(r.Rule, k))
		}
		return rules, k, err
	}
	if len(s.args) > 1 {
		return nil, k, misused("inspect -all: found 2 arguments; expected a key")
	}
	k.Text = s.arg(0)
	rules, at := s.prefix.Rules(ctx)
	if at.Err == nil && len(rules) == 0 {
		at.Err = errors.New("no rule is in use")
	}
	return rules, k, at.Err
}

func (s *session) inspected(u *operate.Use) inspected {
	r := inspected{
		Rule: u.Name, Key: u.Key, Row: rulelist.Of(u.InForce), AsOf: u.AsOf, Computed: u.InForce.Computed || !u.AsOf.IsZero(), Refusals: u.Refusals,
		Used: u.Used, Counted: u.Counted, ResetIn: operate.Duration(u.Reset), RetryAfter: operate.Duration(u.Retry), use: u,
	}
	if left := u.Left(); u.Limit >= 0 {
		r.Capacity, r.Remaining = &u.Limit, &left
	}
	for _, o := range u.Overrides {
		r.Overrides = append(r.Overrides, shownSetting(o))
	}
	if len(u.Limits) > 1 {
		r.Limits = u.Limits
	}
	if r.Overrides != nil || r.Limits != nil {
		declared := rulelist.Of(u.Rule)
		r.Declared = &declared
	}
	for _, c := range u.Taken[max(0, len(u.Taken)-shownPermits):] {
		r.Last = append(r.Last, permits{c.At.UTC(), c.Permits})
	}
	now := s.prefix.Now()
	r.Waiting, r.Ahead, r.Free = places(u.Waiting, now), places(u.Ahead, now), places(u.Free, now)
	for _, c := range u.Running {
		one := running{Permits: c.Permits, Process: c.Process}
		if !c.Until.IsZero() {
			one.EndsIn = operate.Duration(c.Until.Sub(now))
		}
		r.Running = append(r.Running, one)
	}
	return r
}

// places returns the permits of a time to come.
func places(all []engine.Charge, now time.Time) (found []place) {
	for _, c := range all {
		if c.At.After(now) {
			found = append(found, place{operate.Duration(c.At.Sub(now)), c.Permits})
		}
	}
	return found
}

// used says how many permits are used.
func (r *inspected) used() string {
	if r.Capacity == nil {
		return operate.Number(r.Used)
	}
	return operate.Number(r.Used) + " of " + operate.Number(*r.Capacity)
}

// left says how many permits are left, if that is known.
func (r *inspected) left() string {
	if r.Remaining == nil {
		return ""
	}
	return strconv.FormatInt(max(0, *r.Remaining), 10)
}

// notes says why the limit is what it is, what refuses the key, and what else the count has.
func (r *inspected) notes(now time.Time) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	u, key := r.use, cmp.Or(r.Key, "everybody")
	for _, o := range r.Overrides {
		what := "override of " + operate.Whose(o.Rule, o.Key) + ": "
		add("%s%s, %s%s", what, withEnd(o.Kind, &o.Values), operate.SetBy(o.By, o.At), operate.Because(o.Reason))
	}
	switch {
	case !r.AsOf.IsZero():
		add("each call brings its limit; the last one brought this limit as of %s", operate.LocalTime(r.AsOf))
	case r.Computed:
		add("the call brings its limit; %s used", operate.Number(r.Used))
	}
	if r.Declared != nil {
		add("declared %s, mode %s", operate.Limits(u.UsedRule), u.Mode)
	}
	for i := range u.Refusals {
		add("%s", refusalInWords(&u.Refusals[i], key, u.InForce.Mode))
	}
	if len(u.Refusals) > 0 && u.Window > 0 {
		add("besides, its permits are used: the next one is free in %s", operate.Duration(u.Window))
	}
	if u.Unmatched {
		add("patterns not applied: there are settings for networks, and the key is known only by its hash")
	}
	switch {
	case !u.Ends.IsZero():
		add("the open window of %s ends at %s", key, operate.LocalTime(u.Ends))
	case u.InForce.Every != "" && len(u.Waiting) == 0:
		add("no window is open for %s, or none of its permits is used", key)
	}
	if !r.Counted {
		add("nothing is counted for %s: it was not seen lately", key)
	}
	if len(r.Last) > 0 {
		add("last permits at %s", r.lastInWords(now))
	}
	for _, p := range []struct {
		places []place
		text   string
	}{{r.Waiting, "calls wait for %s"}, {r.Ahead, "processes took ahead %s"}, {r.Free, "calls that gave up left %s, which the next calls that wait may use"}} {
		if len(p.places) > 0 {
			add(p.text, placesInWords(p.places))
		}
	}
	return append(all, r.runningInWords()...)
}

// refusalInWords says what refuses a key.
func refusalInWords(r *operate.Refusal, key string, mode ratelimit.Mode) string {
	is := "is"
	if mode != ratelimit.ModeEnforce {
		is = "would be"
	}
	text := fmt.Sprintf("%s %s %s", key, is, operate.Values(r.Kind, new(fleet.Values)))
	since := ""
	if !r.Since.IsZero() {
		since = " since " + operate.LocalTime(r.Since)
	}
	switch {
	case r.ByRule:
		return fmt.Sprintf("%s%s until %s: a refusal of this rule began that, since it has block=; ratelimitctl reset ends it", text, since, operate.LocalTime(r.Until))
	case r.FarSide:
		return fmt.Sprintf("%s%s until %s by %s", text, since, operate.LocalTime(r.Until), r.Who())
	}
	until := operate.LocalTime(r.Until)
	if r.Match || fleet.IsGlob(r.Rule) {
		until += ", as " + operate.Whose(r.Rule, r.Key)
	}
	return fmt.Sprintf("%s until %s, %s%s", text, until, operate.SetBy(r.Who(), r.Since), operate.Because(r.Reason))
}

// lastInWords lists the last permits. Only those of today lack the day.
func (r *inspected) lastInWords(now time.Time) string {
	const day = "2006-01-02 "
	var texts []string
	for _, p := range r.Last {
		text := p.At.Local().Format(day + "15:04:05.000")
		text = strings.TrimPrefix(text, now.Local().Format(day))
		if p.Permits > 1 {
			text += fmt.Sprintf(" (%d)", p.Permits)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ") + r.Last[0].At.Local().Format(" MST")
}

// placesInWords says how many permits the places have, and when they are due.
func placesInWords(places []place) string {
	permits := int64(0)
	for _, p := range places {
		permits += p.Permits
	}
	first, last := places[0].In, places[len(places)-1].In
	if first == last {
		return operate.Count(permits, "permit") + " in " + first
	}
	return fmt.Sprintf("%s, the first in %s and the last in %s", operate.Count(permits, "permit"), first, last)
}

// runningInWords says which calls run, process by process. Those that end first come first.
func (r *inspected) runningInWords() (all []string) {
	type owner struct {
		process string
		end     bool // they end if the process is gone
	}
	by := map[owner][]place{}
	for _, one := range r.Running {
		o := owner{one.Process, one.EndsIn != ""}
		by[o] = append(by[o], place{one.EndsIn, one.Permits})
	}
	for o, running := range by {
		permits := int64(0)
		for _, one := range running {
			permits += one.Permits
		}
		text := operate.Count(permits, "permit") + " of calls that run in " + cmp.Or(o.process, "a process that does not report")
		switch first, last := running[0].In, running[len(running)-1].In; {
		case o.end && first != last:
			text += ", of which the first ends in " + first + " and the last in " + last + " if the process is gone"
		case o.end:
			text += ", which end in " + first + " if the process is gone"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
