package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// A pause beside a count is a marker in the store, which nobody finds who does not know the key. So the process that made it notes it, for people and for
// the case that the store loses the marker. Of a key the note that is in the store counts. A process forgets its own when it finds another one there, or
// none, because the pause was ended; and it removes its own when the pause is over. Notes are written by beats, many in one command.

// pauses are the notes of this process.
type pauses struct {
	known   map[string]*pause // by name; at most 2*MaxPauses
	gone    map[string]bool   // names to remove from the store
	dropped int               // how many notes the process left out or removed, because there were too many
	until   time.Time         // when the last of these pauses ends
	far     []*farPauses      // what is told of far sides, the newest last
}

// pause is a pause that this process noted.
type pause struct {
	PauseNote
	again func(ctx context.Context, left time.Duration) // pauses again, after the store has lost the marker
	text  string                                        // the note as it was written; "" before
}

// NotePause notes that this process has paused a subject for d. again pauses it once more. It costs no command: a beat writes the note.
// by is what of a far side asked for it, in words: "Retry-After: 30", for example. It is "" if no far side did.
func (f *Fleet) NotePause(rule, subject string, d time.Duration, by string, again func(ctx context.Context, left time.Duration)) {
	now := f.Now().UTC().Truncate(time.Millisecond)
	farSide := by != ""
	p := &pause{PauseNote: PauseNote{rule, subject, now, now.Add(d), program().String(), farSide}, again: again}
	name := pauseName(rule, subject)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.pauses
	before := s.known[name]
	if before != nil && before.Until.After(now) {
		if moved := p.Until.Sub(before.Until); moved < time.Second && (farSide || moved > -time.Second) {
			return
		}
		p.Since = before.Since
	}
	if farSide && d >= farFrom {
		f.noteFar(p, d, by, before == nil || !before.Until.After(now))
	}
	s.known[name] = p
	delete(s.gone, name)
	if len(s.known) > 2*MaxPauses {
		s.cut(now)
	}
}

// cut forgets the pauses that end first.
func (s *pauses) cut(now time.Time) {
	for i, name := range endingLast(s.known, func(p *pause) time.Time { return p.Until }) {
		if p := s.known[name]; i >= MaxPauses {
			delete(s.known, name)
			if p.text == "" {
				s.drop(p.Until, now)
			}
		}
	}
}

// endingLast returns the keys of a map, in the order of the ends of their values. The last end comes first.
func endingLast[V any](all map[string]V, end func(V) time.Time) []string {
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return end(all[b]).Compare(end(all[a])) })
}

// drop counts a pause that is not noted.
func (s *pauses) drop(until, now time.Time) {
	s.dropped = s.more(now)
	if until.After(now) {
		s.dropped++
		if until.After(s.until) {
			s.until = until
		}
	}
}

// more returns how many pauses had no room for a note. It returns 0 after the last of these pauses has ended.
func (s *pauses) more(now time.Time) int {
	if !now.Before(s.until) {
		return 0
	}
	return s.dropped
}

// ForgetPause notes that somebody ended the pause of a subject. A beat removes the note, or TellPauses.
func (f *Fleet) ForgetPause(rule, subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := pauseName(rule, subject)
	if delete(f.pauses.known, name); f.server != nil && len(f.pauses.gone) < MaxPauses {
		f.pauses.gone[name] = true
	}
}

// Beats reports whether a beat tells what this process has to say.
func (f *Fleet) Beats() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.self.beating && !f.self.hidden && len(f.self.rules) > 0
}

// TellPauses writes at once what a beat would write of pauses.
func (f *Fleet) TellPauses(ctx context.Context) error {
	if f.server == nil {
		return nil
	}
	_, err := alone(ctx, f, func() (struct{}, error) { return struct{}{}, f.tellPauses(ctx, false) })
	return err
}

// PausesHere returns how many subjects of each rule this process has paused beside their counts: those that a far side asked for, or the others.
func (f *Fleet) PausesHere(farSide bool) map[string]int {
	now, by := f.Now(), map[string]int{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pauses.known {
		if p.FarSide == farSide && p.Until.After(now) {
			by[p.Rule]++
		}
	}
	return by
}

// renewPauses makes the next beat write all notes again, and pauses again what the server may have lost.
func (f *Fleet) renewPauses() {
	f.mu.Lock()
	all := maps.Clone(f.pauses.known)
	for _, p := range all {
		p.text = ""
	}
	f.mu.Unlock()
	if len(all) == 0 {
		return
	}
	go func() { // which takes a command for each
		for name, p := range all {
			if left := p.Until.Sub(f.Now()); left > 0 && f.isKnownPause(name, p) {
				p.again(context.Background(), left)
			}
		}
	}()
}

// isKnownPause reports whether a pause was neither ended nor replaced.
func (f *Fleet) isKnownPause(name string, p *pause) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pauses.known[name] == p
}

// tellPauses writes notes that are new, at most perCommand of them, and removes those of pauses that were ended. If all is true, it looks at the notes
// that it wrote before, too.
func (f *Fleet) tellPauses(ctx context.Context, all bool) error {
	f.mu.Lock()
	var fresh, written []string
	for name, p := range f.pauses.known {
		switch {
		case p.text != "":
			written = append(written, name)
		case len(fresh) < perCommand:
			fresh = append(fresh, name)
		}
	}
	gone := slices.Collect(maps.Keys(f.pauses.gone))
	f.mu.Unlock()
	if all {
		fresh = append(fresh, written...)
	}
	if err := f.remove(ctx, f.keys.pauses, gone); err != nil {
		return err
	}
	f.mu.Lock()
	for _, name := range gone {
		delete(f.pauses.gone, name)
	}
	f.mu.Unlock()
	for some := range slices.Chunk(fresh, perCommand) {
		if err := f.writePauses(ctx, some); err != nil {
			return err
		}
	}
	return f.tellFar(ctx)
}

// writePauses brings some notes of this process and those of the store together.
func (f *Fleet) writePauses(ctx context.Context, names []string) error {
	replies, err := f.do(ctx, command("HMGET", f.keys.pauses, names...), Command{"HEXISTS", f.keys.processes, f.self.id})
	if err != nil {
		return err
	}
	write, over := f.comparePauses(names, texts(replies[0]), replies[1] == int64(1))
	if err := f.remove(ctx, f.keys.pauses, over); err != nil || len(write) == 0 {
		return err
	}
	set := Command{"HSET", f.keys.pauses}
	for p, text := range write {
		set = append(set, pauseName(p.Rule, p.Subject), text)
	}
	replies, err = f.do(ctx, set, Command{"PEXPIRE", f.keys.pauses, pausesLife.Milliseconds()}, Command{"HLEN", f.keys.pauses})
	if err != nil {
		return err
	}
	f.mu.Lock()
	for p, text := range write {
		p.text = text
	}
	f.mu.Unlock()
	if n, _ := replies[2].(int64); n > MaxPauses+perCommand {
		return f.prunePauses(ctx)
	}
	return nil
}

// comparePauses returns the notes to write, and the names of those to remove. there says that the server has lost nothing before it read the texts.
func (f *Fleet) comparePauses(names, stored []string, there bool) (write map[*pause]string, over []string) {
	now := f.Now()
	write = map[*pause]string{}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.pauses.known
	for i, name := range names {
		p := known[name]
		if p == nil {
			continue
		}
		ended := !p.Until.After(now)
		other, err := parsePause(name, stored[i])
		switch {
		case p.text == "" && (ended || p.FarSide && err == nil && other.Until.After(p.Until)): // the pause of another process stays
			delete(known, name)
		case p.text == "":
			text, _ := json.Marshal(p.PauseNote) // texts and times: it never fails
			write[p] = string(text)
		case p.text != stored[i] && there: // it was ended, or another process noted another one
			delete(known, name)
		case ended:
			delete(known, name)
			over = append(over, name)
		}
	}
	return write, over
}
