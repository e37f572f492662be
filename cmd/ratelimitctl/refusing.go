package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// refusing is the output of blocked and paused, as JSON.
type refusing struct {
	Blocked []operate.Refusal `json:"blocked,omitzero"`
	Paused  []operate.Refusal `json:"paused,omitzero"`
	More    string            `json:"more,omitempty"` // why there may be more
}

// printBlocked prints the keys that are blocked, of one rule or of all.
func printBlocked(ctx context.Context, s *session) error {
	return s.printRefusing(ctx, fleet.Block, func(found *operate.Refusing) refusing { return refusing{Blocked: found.All, More: found.More} })
}

// printPaused prints the keys that are paused, of one rule or of all.
func printPaused(ctx context.Context, s *session) error {
	return s.printRefusing(ctx, fleet.Pause, func(found *operate.Refusing) refusing { return refusing{Paused: found.All, More: found.More} })
}

// printRefusing prints what refuses by settings or markers of a kind, under the rule that the arguments name or under all.
func (s *session) printRefusing(ctx context.Context, kind fleet.Kind, inJSON func(*operate.Refusing) refusing) error {
	found := s.prefix.Refusing(ctx, s.arg(0), kind)
	if err := cmp.Or(found.At.Err, s.checkNamed(ctx, len(found.All))); err != nil {
		return err
	}
	found.All = append([]operate.Refusal{}, found.All...) // not null in JSON
	none := s.nothing("nobody is " + operate.Values(kind, new(fleet.Values)))
	return s.print(inJSON(&found), s.withLoss(refusalLines(&found, none))...)
}

// checkNamed returns an error if nothing was found because no rule has the name that the arguments give.
func (s *session) checkNamed(ctx context.Context, found int) error {
	if found > 0 || s.arg(0) == "" {
		return nil
	}
	_, err := s.prefix.Named(ctx, s.arg(0))
	return err
}

// refusalLines are the table, or the text none if there is nothing.
func refusalLines(found *operate.Refusing, none string) [][]string {
	lines, notes := [][]string{{"RULE", "KEY", "UNTIL", "SET BY", "SET AT", "REASON"}}, [][]string(nil)
	if len(found.All) == 0 {
		lines = [][]string{{none}}
	}
	for i := range found.All {
		r := &found.All[i]
		lines = append(lines, []string{r.Rule, cmp.Or(r.Key, "everybody"), operate.LocalTime(r.Until), r.Who(), operate.LocalTime(r.Since), r.Reason})
		note := r.Harmless()
		if note != "" && !slices.ContainsFunc(notes, func(n []string) bool { return n[0] == note }) {
			notes = append(notes, []string{note})
		}
	}
	if found.More != "" {
		notes = append(notes, []string{found.More})
	}
	return append(lines, notes...)
}

// setting is a setting as JSON.
type setting struct {
	Kind  fleet.Kind `json:"kind"`
	Rule  string     `json:"rule"`
	Key   string     `json:"key,omitempty"`   // as errors show it; "" if the setting is for all keys, or the rule has none
	Match bool       `json:"match,omitempty"` // Key is a network or a text such as ann*, which stands for all keys that it matches
	fleet.Values
}

func shownSetting(s *fleet.Setting) setting {
	return setting{s.Kind, s.Rule, key.Shown(s.Key), s.Match, s.Values}
}

// listOverrides prints the overrides in force, of one rule or of all.
func listOverrides(ctx context.Context, s *session) error {
	all, err := s.prefix.Settings(ctx)
	if all == nil {
		return err
	}
	var rows []setting
	for _, one := range all {
		if one.Kind == fleet.Override && (s.arg(0) == "" || fleet.Covers(one.Rule, fleet.SettingName(s.arg(0)))) {
			rows = append(rows, shownSetting(one))
		}
	}
	if err := s.checkNamed(ctx, len(rows)); err != nil {
		return err
	}
	return cmp.Or(printTable(s.output, rows, s.nothing("no override is in force"), "RULE, KEY, CHANGE, UNTIL, SET BY, SET AT, REASON", func(s *setting) []string {
		return []string{s.Rule, cmp.Or(s.Key, "all"), operate.Arguments(&s.Values), cmp.Or(operate.LocalTime(s.Until), "for ever"), s.By, operate.LocalTime(s.At), s.Reason}
	}, s.withLoss(nil)...), err)
}

// withLoss adds to an answer about settings that processes keep others. JSON leaves that to tellLoss.
func (s *session) withLoss(lines [][]string) [][]string {
	if text := s.loss.InWords(); text != "" && !s.output.json {
		lines, s.told = append(lines, []string{text}), true
	}
	return lines
}

// nothing says that the store has no setting. If the store lost none, none is in force.
func (s *session) nothing(inForce string) string {
	if s.loss.Processes > 0 {
		return "none in the store"
	}
	return inForce
}
