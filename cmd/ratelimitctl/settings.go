package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// setting is a setting as JSON.
type setting struct {
	Kind    fleet.Kind `json:"kind"`
	Rule    string     `json:"rule"`
	Key     string     `json:"key,omitempty"`     // as errors show it; "" if the setting is for all keys, or the rule has none
	Subject *string    `json:"subject,omitempty"` // only in settings export: the key in the form of keys, hashed if programs hash keys; nil for all keys
	Begun   bool       `json:"byRule,omitempty"`  // a refusal by a rule with block= began the block
	fleet.Values
}

// shownSetting returns a setting as people know it.
func shownSetting(s *fleet.Setting) setting {
	return setting{Kind: s.Kind, Rule: s.Rule, Key: key.Shown(s.Key), Values: s.Values}
}

// exportSettings prints the settings in force as JSON.
func (t *tool) exportSettings(ctx context.Context, _ []string) error {
	settings, err := t.storedSettings(ctx)
	if err != nil {
		return err
	}
	all := []setting{}
	for _, s := range settings {
		e := setting{Kind: s.Kind, Rule: s.Rule, Values: s.Values}
		if !s.AllKeys {
			e.Subject = &s.Key
		}
		all = append(all, e)
	}
	if err := t.printJSON(all); err != nil {
		return err
	}
	return t.malformed()
}

// storedSettings returns the settings of the store that have not ended.
func (t *tool) storedSettings(ctx context.Context) ([]*fleet.Setting, error) {
	all, err := t.fleet.List(ctx)
	return slices.DeleteFunc(all, func(s *fleet.Setting) bool { return s.EndedAt(t.fleet.Now()) }), err
}

// maxImport bounds an import, in bytes.
const maxImport = 2 * fleet.MaxSettings * fleet.MaxText

// imported says, as JSON, what became of the settings in an import.
type imported struct {
	Read     int `json:"read"`
	Imported int `json:"imported"` // that the store has now
	Ended    int `json:"ended"`
	Older    int `json:"notNewer"` // than what the store has for the same rule and key
	Before   int `json:"before"`   // settings of the store
	After    int `json:"after"`
}

// importSettings adds exported settings to those of the store.
func (t *tool) importSettings(ctx context.Context, args []string) error {
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	actor, err := t.actor()
	if err != nil {
		return err
	}
	settings, err := t.readSettings(name)
	if err != nil {
		return misused(fmt.Sprintf("settings import: %s: %v", name, err))
	}
	before, err := t.storedSettings(ctx)
	if err != nil {
		return err
	}
	keepers, err := t.noteLoss(ctx)
	if err != nil {
		return err
	}
	if err := t.fleet.Import(ctx, actor, settings); err != nil {
		return err
	}
	after, err := t.storedSettings(ctx)
	if err != nil {
		return err
	}
	where, err := t.whereInForce(ctx)
	if err != nil {
		return err
	}
	found := t.imported(settings, after)
	found.Before = len(before)
	lines := [][]string{{fmt.Sprintf("%d of %d imported, %d ended, %d not newer than the store's; the store had %s and has %d", found.Imported, found.Read,
		found.Ended, found.Older, period.Count(int64(found.Before), "setting"), found.After)}, {where}}
	if keepers > 0 {
		lines = append(lines, []string{period.Count(int64(keepers), "process") + " kept settings that the store lost; those that the import lacks are not in force any more"})
	}
	return t.print(found, lines...)
}

// imported returns what became of settings that were read. The store has those of after now.
func (t *tool) imported(read, after []*fleet.Setting) imported {
	i, all := imported{Read: len(read), After: len(after)}, map[string]bool{}
	text := func(s *fleet.Setting) string {
		text, _ := json.Marshal(s.Values) // numbers, texts and times: it never fails
		return s.Name() + string(text)
	}
	for _, s := range after {
		all[text(s)] = true
	}
	for _, s := range read {
		switch {
		case all[text(s)]:
			i.Imported++
		case s.EndedAt(t.fleet.Now()):
			i.Ended++
		default:
			i.Older++
		}
	}
	return i
}

// readSettings reads and checks exported settings. An empty file has none.
func (t *tool) readSettings(name string) (all []*fleet.Setting, err error) {
	in, err := t.input(name)
	if err != nil {
		return nil, cause(err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxImport:
		return nil, fmt.Errorf("found over %d bytes", maxImport)
	case strings.TrimSpace(string(text)) == "":
		return nil, nil
	}
	var read []setting
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return nil, fmt.Errorf("%w; expected the output of settings export", err)
	}
	for i, e := range read {
		if e.Key != "" || e.Begun { // without its subject, it would be for all keys
			return nil, fmt.Errorf("setting %d: found key or byRule; expected the output of settings export", i+1)
		}
		s := &fleet.Setting{Kind: e.Kind, Rule: e.Rule, AllKeys: e.Subject == nil, Values: e.Values}
		if e.Subject != nil {
			s.Key = *e.Subject
		}
		s.Until = s.Until.UTC().Truncate(time.Millisecond) // as the store keeps it
		if err := checkImported(s); err != nil {
			return nil, fmt.Errorf("setting %d: %w", i+1, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// checkImported returns what is wrong with an imported setting.
func checkImported(s *fleet.Setting) error {
	_, known := settingWords[s.Kind]
	switch {
	case !known:
		return fmt.Errorf("kind: found %q; expected override, block or pause", s.Kind)
	case s.AllKeys != (s.Key == "") || s.Key != "" && key.Shown(s.Key) != "" && !key.IsEscaped(s.Key):
		return fmt.Errorf("subject: found %q; expected one in the form of keys", s.Key)
	case s.Kind != fleet.Override && (s.AllKeys || s.Until.IsZero()):
		return errors.New("a subject and until are needed")
	case (fleet.Actor{By: s.By, Reason: s.Reason}).Check() != "":
		return errors.New("by or reason: " + fleet.Actor{By: s.By, Reason: s.Reason}.Check())
	}
	v := ratelimit.Override{Limit: new(int64)} // a block changes nothing, but its rule must have a name
	if s.Kind == fleet.Override {
		var err error
		if v, err = overrideOf(s); err != nil {
			return err
		}
	}
	return ratelimit.New(memstore.New()).Overrides().SetLocal(s.Rule, v)
}
