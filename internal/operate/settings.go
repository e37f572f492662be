package operate

import (
	"bytes"
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
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// Settings returns the settings of the store that have not ended, in the order of fleet.Compare. With an error, the settings are those that can be
// read.
func (p *Prefix) Settings(ctx context.Context) ([]*fleet.Setting, error) {
	var all []*fleet.Setting
	err := p.patience.ask(ctx, func(ctx context.Context) (err error) {
		all, err = p.fleet.List(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s *fleet.Setting) bool { return s.EndedAt(p.Now()) })
	return append([]*fleet.Setting{}, all...), p.malformed()
}

// malformed returns the settings that cannot be read as one error, or nil.
func (p *Prefix) malformed() error {
	var texts []string
	for _, err := range p.fleet.Status().Malformed {
		texts = append(texts, err.Error())
	}
	if texts == nil {
		return nil
	}
	slices.Sort(texts)
	return errors.New(strings.Join(texts, "; "))
}

// Loss is what processes keep in force that the store has lost.
type Loss struct {
	Processes int // that keep settings
	Settings  int // that one of them keeps, at most
}

// InWords says what was lost and what to do. It is "" if nothing was.
func (l Loss) InWords() string {
	if l.Processes == 0 {
		return ""
	}
	return l.what() + ": run ratelimitctl settings recover"
}

func (l Loss) what() string {
	apply := "processes still apply theirs"
	switch l.Processes {
	case 0:
		return ""
	case 1:
		apply = "process still applies its own"
	}
	return fmt.Sprintf("the store lost its settings; %d %s (%s)", l.Processes, apply, Number(int64(l.Settings)))
}

// Loss returns what processes keep in force that the store has lost, this one included.
func (p *Prefix) Loss(ctx context.Context) (Loss, Seen) {
	processes, at := p.processes.Get(ctx)
	return p.lossOf(processes), at
}

func (p *Prefix) lossOf(processes []fleet.Process) (l Loss) {
	for _, one := range processes {
		if one.Lost > 0 {
			l.Processes, l.Settings = l.Processes+1, max(l.Settings, one.Lost)
		}
	}
	if own := p.fleet.Status().Lost; own > 0 && l.Processes == 0 {
		l = Loss{1, own}
	}
	return l
}

// Exported is what an export has, as JSON.
type Exported struct {
	Prefix   string            `json:"prefix"`
	Settings []ExportedSetting `json:"settings"`
}

// ExportedSetting is a setting in an export.
type ExportedSetting struct {
	Kind    fleet.Kind `json:"kind"`
	Rule    string     `json:"rule"`
	Subject *string    `json:"subject,omitempty"` // the key in the form of keys, hashed if programs hash keys; nil for all keys
	Match   bool       `json:"match,omitempty"`   // Subject is a network or a text such as ann*
	fleet.Values
}

// Export returns the settings in force.
func (p *Prefix) Export(ctx context.Context) (Exported, error) {
	settings, err := p.Settings(ctx)
	all := Exported{p.name, []ExportedSetting{}}
	for _, s := range settings {
		e := ExportedSetting{Kind: s.Kind, Rule: s.Rule, Match: s.Match, Values: s.Values}
		if !s.AllKeys {
			e.Subject = &s.Key
		}
		all.Settings = append(all.Settings, e)
	}
	return all, err
}

// maxImport bounds an import, in bytes.
const maxImport = 2 * fleet.MaxSettings * fleet.MaxText

// ReadExport reads and checks an export. An empty one has no settings. The prefix is "" if the export has none.
func ReadExport(in io.Reader) (prefix string, settings []*fleet.Setting, err error) {
	text, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	switch {
	case err != nil:
		return "", nil, err
	case len(text) > maxImport:
		return "", nil, fmt.Errorf("found over %d bytes", maxImport)
	}
	var all Exported
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&all)
	if err == io.EOF {
		return "", nil, nil
	}
	if _, more := d.Token(); err == nil && more != io.EOF { // perhaps a second export, which would be lost
		err = errors.New("found text after the value")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w; expected the output of settings export", err)
	}
	for i, e := range all.Settings {
		s := &fleet.Setting{Kind: e.Kind, Rule: e.Rule, Match: e.Match, AllKeys: e.Subject == nil, Values: e.Values}
		if e.Subject != nil {
			s.Key = *e.Subject
		}
		s.Until = s.Until.UTC().Truncate(time.Millisecond) // as the store keeps it
		if err := checkImported(s); err != nil {
			return "", nil, fmt.Errorf("setting %d: %w", i+1, err)
		}
		settings = append(settings, s)
	}
	return all.Prefix, settings, nil
}

// checkImported returns what is wrong with an imported setting.
func checkImported(s *fleet.Setting) error {
	switch {
	case s.Kind != fleet.Override && s.Kind != fleet.Block && s.Kind != fleet.Pause:
		return fmt.Errorf("kind: found %q; expected override, block or pause", s.Kind)
	case s.Match && !fleet.IsMatch(s.Key):
		return fmt.Errorf("subject: found %q with match; expected a network, or a text with a * at its end", s.Key)
	case s.AllKeys != (s.Key == "") || s.Key != "" && !key.IsSubject(s.Key):
		return fmt.Errorf("subject: found %q; expected one in the form of keys", s.Key)
	case s.Kind != fleet.Override && (s.AllKeys || s.Until.IsZero()):
		return errors.New("a subject and until are needed")
	}
	if wrong := (fleet.Actor{By: s.By, Reason: s.Reason}).Check(); wrong != "" {
		return errors.New("by or reason: " + wrong)
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

// overrideOf returns the override of a setting, without its end.
func overrideOf(s *fleet.Setting) (v ratelimit.Override, err error) {
	text, err := json.Marshal(s.Values)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	v.Until = time.Time{}
	return v, err
}

// Imported says what became of the settings in an import.
type Imported struct {
	Read     int `json:"read"`
	Imported int `json:"imported"` // that the store has now
	Ended    int `json:"ended"`
	Older    int `json:"notNewer"` // than what the store has for the same rule and key
	Before   int `json:"before"`   // settings of the store
	After    int `json:"after"`
	Dropped  int `json:"-"` // processes that kept settings which the store had lost; those that the import lacks are not in force any more
}

// Import adds settings to those of the store. It ends the state in which processes keep settings that the store has lost. Prefix is that of the
// export, or "". Without force, it is an error if that is another one, or if it is "" and no program uses this one.
func (p *Prefix) Import(ctx context.Context, by fleet.Actor, prefix string, settings []*fleet.Setting, force bool) (i Imported, err error) {
	if err := checkActor(by); err != nil {
		return i, err
	}
	exists, err := p.fleet.Exists(ctx)
	switch {
	case err != nil:
		return i, err
	case force:
	case prefix != "" && prefix != p.name:
		return i, fmt.Errorf("the settings are those of prefix %q, and this is %q: see -prefix, or use -force", prefix, p.name)
	case prefix == "" && !exists:
		return i, fmt.Errorf("no program uses prefix %q: see -prefix, or use -force", p.name)
	}
	return p.replace(ctx, settings, func() error { return p.fleet.Import(ctx, by, settings) })
}

// replace writes settings by do, which ends the state in which processes keep settings that the store has lost.
func (p *Prefix) replace(ctx context.Context, settings []*fleet.Setting, do func() error) (i Imported, err error) {
	before, err := p.Settings(ctx)
	if before == nil {
		return i, err
	}
	loss, _ := p.Loss(ctx)
	if err := do(); err != nil {
		return i, err
	}
	after, err := p.Settings(ctx)
	if after == nil {
		return i, err
	}
	i = p.imported(settings, after)
	i.Before, i.Dropped = len(before), loss.Processes
	p.forget()
	return i, nil
}

// imported returns what became of settings that were read. The store has those of after now.
func (p *Prefix) imported(read, after []*fleet.Setting) Imported {
	i, all := Imported{Read: len(read), After: len(after)}, map[string]bool{}
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
		case s.EndedAt(p.Now()):
			i.Ended++
		default:
			i.Older++
		}
	}
	return i
}

const (
	answerWithin = 8 * time.Second // a beat comes every second, and a long answer may take five
	askAgain     = 200 * time.Millisecond
)

// Recover asks the processes what they know of the settings that the store has lost. It waits until those that are alive have answered, up to eight
// seconds.
func (p *Prefix) Recover(ctx context.Context) (r fleet.Recovery, err error) {
	alive, err := p.fleet.Processes(ctx)
	if err != nil {
		return r, err
	}
	word, err := p.fleet.AskKnown(ctx)
	if err != nil {
		return r, err
	}
	for deadline := time.Now().Add(answerWithin); ; {
		r, err = p.fleet.Known(ctx, word)
		for _, one := range alive { // a hung one may count as gone meanwhile
			isOne := func(p fleet.Process) bool { return p.ID == one.ID }
			if !slices.ContainsFunc(r.Answered, isOne) && !slices.ContainsFunc(r.Silent, isOne) {
				r.Silent = append(r.Silent, one)
			}
		}
		if err != nil || len(r.Silent) == 0 && len(r.Answered) > 0 || time.Now().After(deadline) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
}

// Restore writes recovered settings to the store. What somebody set after the loss stays.
func (p *Prefix) Restore(ctx context.Context, by fleet.Actor, r fleet.Recovery) (Imported, error) {
	return p.replace(ctx, r.Settings, func() error { return p.fleet.Recover(ctx, by, r.Settings) })
}

// Following says where the newest setting is in force.
type Following struct {
	Processes int
	Behind    []fleet.Process // that do not say yet that they follow it
	Silent    []fleet.Process // of which nothing was heard lately, perhaps as they hang
}

// SilentAfter is how long after its last word nothing counts as heard of a process, which says something every five seconds.
const SilentAfter = 7 * time.Second

// Following returns which processes follow the newest setting. If wait is above 0, it waits so long until all do. Silent are processes that did not
// answer before.
func (p *Prefix) Following(ctx context.Context, wait time.Duration, silent ...fleet.Process) (f Following, err error) {
	for deadline := time.Now().Add(wait); ; {
		all, behind, err := p.fleet.Behind(ctx)
		if err != nil {
			return f, fmt.Errorf("it is set, but the processes cannot be read: %w", err)
		}
		if f = (Following{len(all), behind, p.unheard(all, behind, silent)}); len(behind) == 0 || !time.Now().Before(deadline) {
			return f, nil
		}
		select {
		case <-ctx.Done():
			return f, context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
}

// unheard returns those of which nothing was heard lately: of the processes that are behind, and of silent ones, which perhaps count as gone by now.
func (p *Prefix) unheard(all, behind, silent []fleet.Process) (unheard []fleet.Process) {
	for _, one := range behind {
		if p.Now().Sub(one.At) > SilentAfter {
			unheard = append(unheard, one)
		}
	}
	for _, one := range silent {
		if !slices.ContainsFunc(all, func(p fleet.Process) bool { return p.ID == one.ID }) {
			unheard = append(unheard, one)
		}
	}
	return unheard
}

// Within is how soon every process follows a setting.
const Within = 2 * time.Second

// InWords says where the newest setting is in force.
func (f Following) InWords() string {
	text := f.hindrance()
	switch {
	case f.Processes == 0:
		return "no process reports now; those that start, or reach the server again, follow it"
	case text != "":
		return text
	case len(f.Behind) == 0:
		return "in force in " + Count(f.Processes, "process")
	}
	return "in force everywhere within " + Duration(Within)
}

// hindrance says of which process it is known that it does not follow soon, or not known whether it does. It is "" if there is none.
func (f Following) hindrance() string {
	for i := range f.Behind {
		if f.Behind[i].Setting != "" {
			return "not everywhere in force soon: a process cannot read settings: " + f.Behind[i].String() + ": " + f.Behind[i].Setting
		}
	}
	if len(f.Silent) == 0 {
		return ""
	}
	text := "perhaps not everywhere in force soon: nothing is heard of " + f.Silent[0].String()
	if more := len(f.Silent) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Hindrance says where the newest setting is perhaps not in force soon. It is "" if no such process is known.
func (p *Prefix) Hindrance(ctx context.Context) string {
	var f Following
	err := p.patience.ask(ctx, func(ctx context.Context) (err error) {
		f, err = p.Following(ctx, 0)
		return err
	})
	if err != nil {
		return ""
	}
	return f.hindrance()
}
