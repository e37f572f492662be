package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// exportSettings prints the settings in force as JSON. It fails if the store has lost some that processes still apply.
func exportSettings(ctx context.Context, s *session) error {
	all, err := s.prefix.Export(ctx)
	if err != nil && len(all.Settings) == 0 {
		return err
	}
	if err := cmp.Or(s.printJSON(all), err); err != nil {
		return err
	}
	if s.loss.Processes > 0 {
		return errors.New("the export lacks the settings that the store has lost: run ratelimitctl settings recover first")
	}
	return nil
}

// importSettings adds exported settings to those of the store.
func importSettings(ctx context.Context, s *session) error {
	name := cmp.Or(s.arg(0), "-")
	by, err := s.actor()
	if err != nil {
		return err
	}
	file, err := s.openFile(name)
	if err != nil {
		return misused(fmt.Sprintf("settings import: %s: %v", name, cause(err)))
	}
	defer file.Close()
	prefix, settings, err := operate.ReadExport(file)
	if err != nil {
		return misused(fmt.Sprintf("settings import: %s: %v", name, err))
	}
	found, err := s.prefix.Import(ctx, by, prefix, settings, s.force)
	if err != nil {
		return err
	}
	where, err := s.whereInForce(ctx)
	if err != nil {
		return err
	}
	lines := [][]string{{fmt.Sprintf("%d of %d imported, %d ended, %d not newer than the store's; the store had %s and has %d", found.Imported, found.Read,
		found.Ended, found.Older, operate.Count(found.Before, "setting"), found.After)}, {where}}
	if found.Dropped > 0 {
		lines = append(lines, []string{operate.Count(found.Dropped, "process") + " kept settings that the store lost; those that the import lacks are not in force any more"})
	}
	return s.print(found, lines...)
}

// recovered is the output of settings recover, as JSON.
type recovered struct {
	operate.Imported
	Settings []setting `json:"settings"`
	Answered int       `json:"answered"`         // processes
	Silent   []string  `json:"silent,omitempty"` // processes that were alive, and have not answered
}

// recoverSettings restores what the store has lost and processes still know.
func recoverSettings(ctx context.Context, s *session) error {
	by, err := s.actor()
	if err != nil {
		return err
	}
	known, err := s.prefix.Recover(ctx)
	if err != nil {
		return err
	}
	if len(known.Answered) == 0 {
		return errors.New("no process answered: restore an export by settings import, or end the state by importing an empty file")
	}
	out, lines := recovered{Settings: []setting{}, Answered: len(known.Answered)}, s.recoveredLines(&known)
	for _, one := range known.Settings {
		out.Settings = append(out.Settings, shownSetting(one))
	}
	keeps := ""
	for i := range known.Silent {
		out.Silent = append(out.Silent, known.Silent[i].String())
		if known.Silent[i].Lost > 0 {
			keeps = known.Silent[i].String()
		}
	}
	if keeps != "" && len(known.Settings) == 0 { // an import of nothing would end them
		return cmp.Or(s.print(out, lines...), fmt.Errorf("nothing is restored: who answered knows no lost setting, and %s, which keeps some, did not answer: "+
			"run it again, or restore an export by settings import", keeps))
	}
	if loss, _ := s.prefix.Loss(ctx); loss.Processes == 0 && len(known.Settings) == 0 {
		all, err := s.prefix.Settings(ctx)
		if all == nil {
			return err
		}
		out.Before, out.After = len(all), len(all)
		return s.print(out, append(lines, []string{"the store has lost nothing that they know"})...)
	}
	if out.Imported, err = s.prefix.Restore(ctx, by, known); err != nil {
		return err
	}
	where, err := s.whereInForce(ctx, known.Silent...)
	if err != nil {
		return err
	}
	lines = append(lines, []string{fmt.Sprintf("%d of %d restored; the store has %s", out.Imported.Imported, out.Read, operate.Count(out.After, "setting"))}, []string{where})
	return s.print(out, lines...)
}

// recoveredLines says what the processes know, and which did not answer.
func (s *session) recoveredLines(known *fleet.Recovery) (lines [][]string) {
	if len(known.Settings) > 0 {
		lines = append(lines, []string{"KIND", "RULE", "KEY", "WHAT", "SET BY", "REASON"})
	}
	for _, one := range known.Settings {
		shown := shownSetting(one)
		lines = append(lines, []string{string(shown.Kind), shown.Rule, cmp.Or(shown.Key, "all"), withEnd(shown.Kind, &shown.Values), shown.By, shown.Reason})
	}
	lines = append(lines, []string{operate.Count(len(known.Answered), "process") + " answered"})
	for i := range known.Silent {
		lines = append(lines, []string{"no answer came from " + known.Silent[i].String()})
	}
	return lines
}
