package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// inspected says, as JSON, what is in force for a key under a rule, why, and what it has used.
type inspected struct {
	Rule          string        `json:"rule"`
	Key           string        `json:"key,omitempty"`
	directive                   // in force
	AsOf          time.Time     `json:"limitAsOf,omitzero"`         // when a process said that the last call brought this limit
	Declared      *directive    `json:"declared,omitempty"`         // if something else is in force
	Limits        map[int64]int `json:"processesByLimit,omitempty"` // if processes declare different limits
	Because       []setting     `json:"because,omitempty"`          // the settings in force
	BlockedByRule time.Time     `json:"blockedByRule,omitzero"`     // until when its block= refuses the key
	PausedByRule  time.Time     `json:"pausedByRule,omitzero"`      // until when a marker of its pause= pauses the key
	PausedBy      *fleet.Change `json:"pausedBy,omitempty"`         // who did, if that is known
	Used          int64         `json:"used"`
	Capacity      *int64        `json:"capacity,omitempty"` // permits that the key can have at once: the limit, or the burst of a bucket; nil if computed
	Remaining     *int64        `json:"remaining,omitempty"`
	Counted       bool          `json:"counted"` // the store has a count for the key
	ResetIn       string        `json:"resetIn,omitempty"`
	RetryAfter    string        `json:"retryAfter,omitempty"`
	Last          []permits     `json:"lastPermits,omitempty"` // the newest last
	Waiting       []place       `json:"waiting,omitempty"`
	Ahead         []place       `json:"ahead,omitempty"` // permits that leases took
	Free          []place       `json:"free,omitempty"`

	words, declared string // the limit in words
}

// permits were admitted at a time.
type permits struct {
	At      time.Time `json:"at"`
	Permits int64     `json:"permits"`
}

// shownPermits is how many of the last permits are shown.
const shownPermits = 5

// inspect shows a key under the rules of a name, or under all rules.
func (t *tool) inspect(ctx context.Context, args []string) error {
	rules, all, err := t.inspectedBy(ctx, args)
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil {
		return err
	}
	sums, err := t.limitsOfCalls(ctx, rules)
	if err != nil {
		return err
	}
	var rows []inspected
	var notes [][]string
	for i, q := range all {
		s, err := t.inspectOne(ctx, &rules[i], q, sums)
		if err != nil {
			return err
		}
		rows = append(rows, s)
		for _, note := range s.notes(t.fleet.Now()) {
			notes = append(notes, []string{s.Rule + ", " + s.words + ": " + note})
		}
	}
	return printTable(t, rows, "", "RULE, LIMIT, MODE, USED, REMAINING, RESET IN, RETRY AFTER", func(s *inspected) []string {
		return []string{s.Rule, s.words, s.Mode, s.use(), s.left(), s.ResetIn, s.RetryAfter}
	}, t.withKept(notes)...)
}

// inspectedBy returns the rules of the name RULE, or with -all those that have keys, and a request for KEY under each of them.
func (t *tool) inspectedBy(ctx context.Context, args []string) (rules []ratelimit.UsedRule, all []ratelimit.Request, err error) {
	key := argument(args, 1)
	if t.all {
		if len(args) > 1 {
			return nil, nil, misused("inspect -all: found 2 arguments; expected a key")
		}
		key = args[0]
		rules, err = t.usedRules(ctx)
		rules = slices.DeleteFunc(rules, func(r ratelimit.UsedRule) bool { return r.Key == "" })
		if err == nil && len(rules) == 0 {
			err = errors.New("no rule has keys")
		}
	} else {
		rules, err = t.rulesNamed(ctx, args[0])
	}
	if err == nil {
		all, err = requests(rules, []string{key})
	}
	return rules, all, err
}

// limitsOfCalls returns what processes report, which has the limits that calls brought. If calls bring none, it reads nothing.
func (t *tool) limitsOfCalls(ctx context.Context, rules []ratelimit.UsedRule) (*traffic.Sums, error) {
	if !slices.ContainsFunc(rules, func(r ratelimit.UsedRule) bool { return r.Computed }) {
		return traffic.Sum(nil, nil), nil
	}
	processes, err := t.fleet.Processes(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := t.fleet.Reports(ctx, processes)
	return traffic.Sum(reports, t.names(rules)), err
}

// inspectOne inspects the key of a request under a rule.
func (t *tool) inspectOne(ctx context.Context, used *ratelimit.UsedRule, q ratelimit.Request, sums *traffic.Sums) (s inspected, err error) {
	subject, err := t.subject(q)
	if err != nil {
		return s, err
	}
	rule, err := t.limiter.RuleFor(q)
	if err != nil {
		return s, err
	}
	if s.Rule = q.Rule.Name; rule.Computed {
		known := q
		known.Rule, s.AsOf = sums.Known(q.Rule, rule.Window(), subject)
		if rule, err = t.limiter.RuleFor(known); err != nil {
			return s, err
		}
	}
	s.directive, s.words = directiveOf(rule), inWords(rule)
	s.Computed = s.Computed || !s.AsOf.IsZero()
	quota, retry, err := t.peek(ctx, rule, q.Key)
	if err != nil {
		return s, err
	}
	s.Key, s.Used = quota.Key, quota.Limit-quota.Remaining
	if !rule.Computed || quota.Limit > 0 { // a bucket may have a burst of its own
		s.Capacity, s.Remaining = &quota.Limit, &quota.Remaining
	}
	s.ResetIn = words(quota.Reset)
	if err := t.readCounts(ctx, &s, rule, q); err != nil {
		return s, err
	}
	if s.BlockedByRule, err = t.marked(ctx, fleet.Block, q); err != nil {
		return s, err
	}
	if s.PausedByRule, err = t.marked(ctx, fleet.Pause, q); err != nil {
		return s, err
	}
	if !s.PausedByRule.IsZero() {
		if s.PausedBy, err = t.pausedBy(ctx, q.Rule.Name, subject, s.PausedByRule); err != nil {
			return s, err
		}
	}
	s.Because = t.sources(q.Rule.Name, subject)
	if rule.Mode == ratelimit.ModeEnforce {
		retry = max(retry, s.refusedUntil().Sub(t.fleet.Now()))
	}
	overridden := slices.ContainsFunc(s.Because, func(b setting) bool { return b.Kind == fleet.Override })
	if before := directiveOf(q.Rule); overridden || len(used.Limits) > 1 {
		s.Declared, s.declared = &before, declaredLimit(used)
	}
	if len(used.Limits) > 1 {
		s.Limits = used.Limits
	}
	s.RetryAfter = words(retry)
	return s, nil
}

// refusedUntil returns until when blocks and pauses keep the key from permits, or a time in the past.
func (s *inspected) refusedUntil() time.Time {
	until := s.BlockedByRule
	if s.PausedByRule.After(until) {
		until = s.PausedByRule
	}
	for _, b := range s.Because {
		if b.Kind != fleet.Override && b.Until.After(until) {
			until = b.Until
		}
	}
	return until
}

// peek returns what a key has left under a rule with its overrides applied, whether the key is blocked or not.
func (t *tool) peek(ctx context.Context, rule ratelimit.Rule, key string) (quota ratelimit.Quota, retry time.Duration, err error) {
	// A member that is not counted yet is for a rule with distinct=.
	d, err := t.counts.Peek(ctx, ratelimit.Request{Rule: rule, Key: key, Member: rand.Text()})
	for _, q := range d.Quotas {
		quota = q
	}
	return quota, d.RetryAfter, err
}

// left is peek for a request.
func (t *tool) left(ctx context.Context, q ratelimit.Request) (ratelimit.Quota, error) {
	rule, err := t.limiter.RuleFor(q)
	if err != nil {
		return ratelimit.Quota{}, err
	}
	quota, _, err := t.peek(ctx, rule, q.Key)
	return quota, err
}

// readCounts reads what the counts of a request have, besides how many permits are left.
func (t *tool) readCounts(ctx context.Context, s *inspected, rule ratelimit.Rule, q ratelimit.Request) error {
	states, err := t.limiter.StateKeys(q)
	for _, state := range states {
		life, err := t.client.PTTL(ctx, state).Result()
		if err != nil {
			return err
		}
		s.Counted = s.Counted || life != -2 // which says that there is no such key
		if err := t.readTimes(ctx, s, rule, state); err != nil {
			return err
		}
	}
	if rule.Lease > 0 { // future permits are those of leases
		s.Ahead, s.Waiting = s.Waiting, nil
	}
	return err
}

// sources returns the settings in force for a subject.
func (t *tool) sources(rule, subject string) (all []setting) {
	of := t.fleet.InForce().Of(fleet.SettingName(rule))
	own := of.OfKey(subject)
	for _, s := range []*fleet.Setting{of.All, own.Override, own.Block, own.Pause} {
		if s != nil {
			all = append(all, shownSetting(s))
		}
	}
	return all
}

// use says how many permits are used.
func (s *inspected) use() string {
	if s.Capacity == nil {
		return strconv.FormatInt(s.Used, 10)
	}
	return fmt.Sprintf("%d of %d", s.Used, *s.Capacity)
}

// left says how many permits are left, if that is known.
func (s *inspected) left() string {
	if s.Remaining == nil {
		return ""
	}
	return strconv.FormatInt(*s.Remaining, 10)
}

// notes says why the limit is what it is, and what else the count has.
func (s *inspected) notes(now time.Time) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	key, is, refuses := cmp.Or(s.Key, "everybody"), "is", "refuses"
	if s.Mode != ratelimit.ModeEnforce.String() {
		is, refuses = "would be", "would refuse"
	}
	for _, b := range s.Because {
		what := "override of the rule: "
		switch {
		case b.Kind == fleet.Override && b.Key != "":
			what = "override of " + b.Key + ": "
		case b.Kind != fleet.Override:
			what = key + " " + is + " "
		}
		add("%s%s, set by %s at %s%s", what, valuesInWords(b.Kind, &b.Values), cmp.Or(b.By, "a program"), local(b.At), because(b.Reason))
	}
	switch {
	case !s.AsOf.IsZero():
		add("each call brings its limit; the last one brought this limit as of %s", local(s.AsOf))
	case s.Computed:
		add("the call brings its limit; %d used", s.Used)
	}
	if s.Declared != nil {
		add("declared %s, mode %s", s.declared, s.Declared.Mode)
	}
	if !s.BlockedByRule.IsZero() {
		add("its block= %s %s until %s", refuses, key, local(s.BlockedByRule))
	}
	if !s.PausedByRule.IsZero() {
		by := "by its pause=, as far as ratelimitctl changes tells"
		if c := s.PausedBy; c != nil {
			by = fmt.Sprintf("set by %s at %s%s", c.By, local(c.At), because(c.Reason))
		}
		add("%s %s paused until %s, %s", key, is, local(s.PausedByRule), by)
	}
	if !s.Counted {
		add("nothing is counted for %s: it was not seen lately", key)
	}
	if len(s.Last) > 0 {
		add("last permits at %s", s.lastInWords(now))
	}
	if len(s.Waiting) > 0 {
		add("calls wait for %s", placesInWords(s.Waiting))
	}
	if len(s.Ahead) > 0 {
		add("processes took ahead %s", placesInWords(s.Ahead))
	}
	if len(s.Free) > 0 {
		add("calls that gave up left %s, which the next calls that wait may use", placesInWords(s.Free))
	}
	return all
}

// because adds a reason to a sentence.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// lastInWords lists the last permits. Only those of today lack the day.
func (s *inspected) lastInWords(now time.Time) string {
	const day = "2006-01-02 "
	var texts []string
	for _, p := range s.Last {
		text := p.At.Local().Format(day + "15:04:05.000")
		text = strings.TrimPrefix(text, now.Local().Format(day))
		if p.Permits > 1 {
			text += fmt.Sprintf(" (%d)", p.Permits)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ") + s.Last[0].At.Local().Format(" MST")
}

// placesInWords says how many permits the places have, and when they are due.
func placesInWords(places []place) string {
	permits := int64(0)
	for _, p := range places {
		permits += p.Permits
	}
	first, last := places[0].In, places[len(places)-1].In
	if first == last {
		return period.Count(permits, "permit") + " in " + first
	}
	return fmt.Sprintf("%s, the first in %s and the last in %s", period.Count(permits, "permit"), first, last)
}
