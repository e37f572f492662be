package fleet

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Edits are written in rounds. In a round, one of the callers that wait reads what is new in the store, plans the edits of those callers, up to
// perCommand settings, and writes them by one script, which counts their versions. If another process has just set one of the names, the script
// leaves out that edit, and the next round plans it again. So only writers of the same name wait for each other. Where scripts do not run, a
// transaction that watches the version writes a round, and any other writer makes it fail.
//
// A script runs for less than a millisecond. So an edit of more settings is written in several rounds, and its settings hold one part after the
// other.

// pending is an edit that waits, or a part of which is written.
type pending struct {
	*Edit
	next     int // the first of its settings that is not written
	answered bool
	done     bool
	err      error
	gone     atomic.Bool // the caller has an answer, or has given up
}

// Change makes an edit for all processes, and reports whether it did. This process follows at once. If it returns an error, the store may have
// some of the settings.
func (f *Fleet) Change(ctx context.Context, e Edit) (done bool, err error) {
	p := &pending{Edit: &e}
	defer p.gone.Store(true)
	f.mu.Lock()
	f.waiting = append(f.waiting, p)
	f.mu.Unlock()
	return alone(ctx, f, func() (bool, error) {
		for try := 1; !p.answered && !p.gone.Load(); try++ {
			wrote, err := f.round(context.WithoutCancel(ctx)) // others may wait longer than this caller
			if err != nil {
				f.refuse(err)
			} else if !wrote { // another process did
				time.Sleep(rand.N(time.Duration(min(try, 20)) * 2 * time.Millisecond))
			}
		}
		return p.done, p.err
	})
}

// Import replaces the settings of all processes by those of the store and the given ones. Of two for the same rule and key, the newer holds. It
// ends the state in which processes keep settings that the store has lost.
func (f *Fleet) Import(ctx context.Context, by Actor, settings []*Setting) error {
	return f.replace(ctx, by, "import", settings)
}

// replace is Import. People are told that it is what it is called.
func (f *Fleet) replace(ctx context.Context, by Actor, what string, settings []*Setting) error {
	newest := map[string]*Setting{}
	for _, s := range settings {
		if before := newest[s.Name()]; before == nil || s.At.After(before.At) {
			newest[s.Name()] = s
		}
	}
	_, err := f.Change(ctx, Edit{Actor: by, What: what, Settings: slices.SortedFunc(maps.Values(newest), Compare), replaced: true})
	return err
}

// unanswered returns the edits that wait.
func (f *Fleet) unanswered() []*pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = slices.DeleteFunc(f.waiting, func(p *pending) bool { return p.answered || p.gone.Load() })
	return slices.Clone(f.waiting)
}

// refuse answers all edits that wait with an error of the store.
func (f *Fleet) refuse(err error) {
	for _, p := range f.unanswered() {
		p.answered, p.err = true, err
	}
}

// round writes some of the edits that wait. It reports whether one of them got on.
func (f *Fleet) round(ctx context.Context) (bool, error) {
	if _, err := f.clock(ctx); err != nil {
		return false, err
	}
	var w *writing
	plan := func(do Do) error {
		err := f.refresh(ctx, do)
		if err == nil {
			w = f.plan(f.unanswered())
		}
		return err
	}
	var versions []int64
	var err error
	if !f.scriptless {
		if err = plan(f.do); err == nil {
			versions, f.scriptless, err = f.run(ctx, w)
		}
	}
	if f.scriptless {
		var sent bool
		sent, err = f.server.Try(ctx, f.keys.version, func(do Do) ([]Command, error) {
			if err := plan(do); err != nil {
				return nil, err
			}
			return w.commands(f), nil
		})
		if sent {
			versions = w.counted()
		}
	}
	if err != nil {
		return false, err
	}
	return f.commit(ctx, w, versions) || w.refused, nil
}

// writing is what a round writes.
type writing struct {
	epoch, next string // what the store has, and what it has then
	version     int64  // that this process knows
	parts       []*part
	settings    []*Setting      // of all parts
	names       map[string]bool // of these settings
	over        []string        // names to remove
	life        time.Duration   // until the settings expire; 0 means never
	now         time.Time
	refused     bool // an edit was answered without being written
}

// part is an edit, or the next settings of one.
type part struct {
	*pending
	settings []*Setting
	before   *Setting // what the first one replaces, or nil
	through  int      // how many settings of the edit are written with it
	more     int      // how many more settings hold with it
	patterns int      // how many more of them are by pattern
	room     int64    // up to this version of the store there is room for them, whatever others have set
	change   *Change  // for people, or nil
}

// plan plans a round. It answers the edits that are not to be written.
func (f *Fleet) plan(waiting []*pending) *writing {
	f.drop()
	k, held, patterns := &f.changed, int(f.InForce().total().settings), f.InForce().patternCount()
	w := &writing{epoch: k.epoch, next: cmp.Or(k.epoch, newID()), version: k.version, names: map[string]bool{}, now: f.Now().UTC().Truncate(time.Millisecond)}
	for _, p := range waiting {
		if len(w.parts) > 0 && (p.replaced || len(w.settings)+len(p.Settings)-p.next > perCommand) {
			break
		}
		if slices.ContainsFunc(p.Settings[p.next:], func(s *Setting) bool { return w.names[s.Name()] }) {
			continue // it replaces what this round sets
		}
		part, err := f.planPart(p, held, patterns, w.now)
		if part == nil {
			p.answered, p.err, w.refused = true, err, true
		} else {
			held, patterns = held+part.more, patterns+part.patterns
			w.add(part)
		}
		if p.replaced && part != nil {
			break
		}
	}
	for name := range k.over {
		if len(w.over) == perCommand {
			break
		}
		if !w.names[name] {
			w.over = append(w.over, name)
		}
	}
	if last := withAll(k.settings, w.settings).total().last; last < never.UnixMilli() {
		w.life = time.UnixMilli(max(last, w.now.UnixMilli())).Add(2 * deadLife).Sub(w.now)
	}
	return w
}

// add adds a part. The last one of an import begins an epoch.
func (w *writing) add(p *part) {
	w.parts, w.settings = append(w.parts, p), append(w.settings, p.settings...)
	for _, s := range p.settings {
		w.names[s.Name()] = true
	}
	if p.replaced && p.through == len(p.Settings) {
		w.next = strconv.FormatInt(w.now.UnixMilli(), 10) + "." + newID()
	}
}

// planPart plans the next part of an edit. Before the first part it plans the whole, to see whether the edit can be made, and what to tell people. held
// is how many settings hold without the part, and patterns how many of them are by pattern. It returns nil if nothing more of the edit is to be written.
func (f *Fleet) planPart(p *pending, held, patterns int, now time.Time) (*part, error) {
	most := MaxSettings
	if p.Actor.By == "" {
		most = MaxByProgram
	}
	if p.replaced {
		held -= f.Status().Lost // they do not hold after an import
		patterns -= f.InForce().lostByPattern()
	}
	through, first := min(len(p.Settings), p.next+perCommand), p.next == 0
	if first {
		through = len(p.Settings)
	}
	part, err := f.planThrough(p, through, now)
	switch {
	case part == nil && err == nil && !first:
		return nil, &Unfit{fmt.Sprintf("found other changes meanwhile; %d of %d settings were made", p.next, len(p.Settings))}
	case part == nil:
		return nil, err
	case part.more > 0 && held+part.more > most:
		return nil, &Unfit{fmt.Sprintf("found %d overrides, blocks and pauses; expected at most %d", held+part.more, most)}
	case part.patterns > 0 && patterns+part.patterns > MaxPatterns:
		return nil, &Unfit{fmt.Sprintf("found %d settings by pattern; expected at most %d", patterns+part.patterns, MaxPatterns)}
	}
	var change *Change
	if first {
		change = f.changeOf(part, now)
	}
	if through > p.next+perCommand {
		if part, err = f.planThrough(p, p.next+perCommand, now); part == nil {
			return nil, err
		}
	}
	if part.room = math.MaxInt64; part.more > 0 {
		part.room = f.changed.version + int64(most-held-part.more)
	}
	if part.patterns > 0 {
		part.room = min(part.room, f.changed.version+int64(MaxPatterns-patterns-part.patterns))
	}
	part.change = change
	return part, nil
}

// changeOf returns the change of an edit that is planned as a whole, or nil. It is written with the first part, so that people see who made it even
// if the others fail. An import is one of all settings that hold after it.
func (f *Fleet) changeOf(p *part, now time.Time) *Change {
	wrote := p.settings
	if p.replaced {
		all := map[string]*Setting{}
		for _, s := range wrote {
			all[s.Name()] = s
		}
		for s := range f.changed.settings.all() {
			if name := s.Name(); all[name] == nil && s.holds(now) && !s.lost {
				all[name] = s
			}
		}
		wrote = slices.SortedFunc(maps.Values(all), Compare)
	}
	return p.note(p.before, wrote, now)
}

// planThrough plans the settings of an edit that are not written, up to one of them. It returns nil if the edit is not to be made.
func (f *Fleet) planThrough(p *pending, through int, now time.Time) (*part, error) {
	part := &part{pending: p, through: through}
	for _, s := range p.Settings[p.next:through] {
		before := f.changed.settings.get(s.Name())
		if before != nil && !before.holds(now) {
			before = nil
		}
		if p.replaced && (!s.holds(now) || before != nil && !before.lost && !s.At.After(before.At)) {
			continue
		}
		s = s.copy()
		if p.Each != nil && !p.Each(before, s) {
			return nil, nil
		}
		if s.Until = f.instant(s.Until); p.For > 0 {
			s.Until = now.Add(p.For)
		}
		if !p.replaced {
			s.At, s.By, s.Reason = now, cmp.Or(p.Actor.By, s.By), p.Actor.Reason
		}
		if _, err := s.text(); err != nil {
			return nil, err
		}
		if len(part.settings) == 0 {
			part.before = before
		}
		part.settings = append(part.settings, s)
		if p.replaced && before != nil && before.lost {
			before = nil
		}
		part.count(before, s, now)
	}
	return part, nil
}

// count counts a setting that replaces another one, or nil.
func (p *part) count(before, s *Setting, now time.Time) {
	more := 0
	if before != nil {
		more--
	}
	if s.holds(now) {
		more++
	}
	if p.more += more; s.byPattern() {
		p.patterns += more
	}
}

// counted returns the version before the round, and that after each part, if nobody else writes.
func (w *writing) counted() []int64 {
	versions := []int64{w.version}
	for i, p := range w.parts {
		versions = append(versions, versions[i]+int64(len(p.settings)))
	}
	return versions
}

//go:embed write.lua
var script string

// run writes a round by the script, or in a store in this process. It returns what the script replies, or reports that scripts cannot run.
func (f *Fleet) run(ctx context.Context, w *writing) (versions []int64, scriptless bool, err error) {
	if f.server == nil || len(w.parts) == 0 {
		return w.counted(), false, nil
	}
	k := &f.keys
	args := []any{w.epoch, w.version, w.next, w.life.Milliseconds(), MaxChanges, changesLife.Milliseconds(), len(w.over)}
	for _, name := range w.over {
		args = append(args, name)
	}
	for _, p := range w.parts {
		note := ""
		if p.change != nil {
			note = p.change.text()
		}
		args = append(args, len(p.settings), p.room, note)
		for _, s := range p.settings {
			text, _ := s.text() // planThrough has checked it
			args = append(args, s.Name(), text)
		}
	}
	reply, ok, err := f.server.Run(ctx, script, []string{k.settings, k.versions, k.version, k.epoch, k.changes}, args...)
	array, _ := reply.([]any)
	versions = make([]int64, len(array))
	for i, v := range array {
		versions[i], _ = v.(int64)
	}
	return versions, !ok, err
}

// commands are those of the transaction that writes a round where scripts do not run.
func (w *writing) commands(f *Fleet) []Command {
	if len(w.parts) == 0 {
		return nil
	}
	all := []Command{{"SET", f.keys.version, w.version + int64(len(w.settings))}, {"SET", f.keys.epoch, w.next}}
	if len(w.over) > 0 {
		all = append(all, command("HDEL", f.keys.settings, w.over...), command("ZREM", f.keys.versions, w.over...))
	}
	set, add := Command{"HSET", f.keys.settings}, Command{"ZADD", f.keys.versions}
	for i, s := range w.settings {
		text, _ := s.text() // planThrough has checked it
		set = append(set, s.Name(), text)
		add = append(add, w.version+int64(i)+1, s.Name())
	}
	if len(w.settings) > 0 {
		all = append(all, set, add)
	}
	for _, p := range w.parts {
		if p.change != nil {
			all = append(all, f.noting(p.change)...)
		}
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

// commit makes this process follow what was written: the parts with a version. versions begins with that of the store before the round. It reports
// whether anything was written.
func (f *Fleet) commit(ctx context.Context, w *writing, versions []int64) bool {
	if len(versions) != len(w.parts)+1 {
		return false
	}
	k, last, wrote := &f.changed, versions[0], false
	var settings []*Setting
	for i, p := range w.parts {
		if versions[i+1] < 0 {
			continue
		}
		for j, s := range p.settings {
			s.version = last + int64(j) + 1
			delete(k.malformed, s.Name())
		}
		settings, last, wrote = append(settings, p.settings...), versions[i+1], true
		p.advance()
		if f.server == nil && p.change != nil {
			f.noteHere(p.change)
		}
	}
	if !wrote {
		return false
	}
	for _, name := range w.over {
		delete(k.over, name)
	}
	for name := range w.names {
		delete(k.over, name)
	}
	if versions[0] > w.version && f.noteRead(f.follow(ctx, f.do, w.next, last)) == nil {
		return true // others have written, too
	}
	if versions[0] == w.version {
		k.epoch, k.version = w.next, last
	}
	if at := importTime(k.epoch); at > k.imported { // what was lost does not hold any more
		k.imported = at
		for s := range k.settings.all() {
			if s.lost {
				k.settings = k.settings.with(s.Name(), nil)
			}
		}
		f.enforce()
	}
	f.apply(settings)
	return true
}

// advance notes that a part was written.
func (p *part) advance() {
	if !p.replaced {
		copy(p.Settings[p.next:], p.settings)
	}
	p.next = p.through
	p.answered = p.next == len(p.Settings)
	p.done = p.answered
}
