package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// A far side that asks for a pause of a minute or more is told to operators: in the log, and among the changes. Programs may not write changes, so these
// are in a hash of their own, from which Changes reads them.

const (
	farFrom   = time.Minute         // pauses from this length on are told
	farEvery  = 10 * time.Minute    // of a rule once in this time, with the number of keys
	maxFar    = 100                 // the newest are kept
	farLife   = 30 * 24 * time.Hour // of the hash
	farReason = "a far side asked for it"
)

// farPauses are the pauses of a rule that far sides asked this process for within farEvery.
type farPauses struct {
	Change
	keys int
	most time.Duration // the longest pause
	by   string        // what asked for it
	text string        // as it was written; "" before
}

// noteFar notes a pause that a far side asked for by what by says. fresh says that its subject was not paused before. The notes must be locked.
func (f *Fleet) noteFar(p *pause, d time.Duration, by string, fresh bool) {
	s := &f.pauses
	i := slices.IndexFunc(s.far, func(w *farPauses) bool { return w.Rule == p.Rule && p.Since.Sub(w.At) < farEvery })
	if i < 0 {
		w := &farPauses{Change: Change{At: p.Since, By: p.By, Reason: farReason, What: "pause", Rule: p.Rule, Key: p.Subject, FarSide: true}}
		s.far = append(s.far, w)
		i = len(s.far) - 1
		time.AfterFunc(beatEvery, func() { f.logFar(w) }) // so that it has the number of keys
	}
	w := s.far[i]
	if fresh {
		w.keys++
	}
	if d > w.most {
		w.most, w.by = d, by
	}
	if w.keys > 1 {
		w.Keys = w.keys
	}
	w.For, w.text = period.Format(w.most.Round(time.Second)), ""
	s.far = s.far[max(0, len(s.far)-maxFar):]
}

func (f *Fleet) logFar(w *farPauses) {
	f.mu.Lock()
	keys, most, by := w.keys, w.For, w.by
	f.mu.Unlock()
	if logger := f.logger.Load(); logger != nil {
		logger.Warn("a far side asked for a pause; \"ratelimitctl paused\" lists the keys", "rule", w.Rule, "keys", keys, "for", most, "by", by)
	}
}

// farName returns the name under which the store has a change. Names sort by time.
func (f *Fleet) farName(w *farPauses) string {
	return fmt.Sprintf("%013d:%s:%s", w.At.UnixMilli(), f.self.id, w.Rule)
}

// tellFar writes what is new of far sides.
func (f *Fleet) tellFar(ctx context.Context) error {
	set, fresh := Command{"HSET", f.keys.farSide}, map[*farPauses]string{}
	f.mu.Lock()
	for _, w := range f.pauses.far {
		if w.text == "" {
			fresh[w] = w.Change.text()
			set = append(set, f.farName(w), fresh[w])
		}
	}
	f.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	replies, err := f.do(ctx, set, Command{"PEXPIRE", f.keys.farSide, farLife.Milliseconds()}, Command{"HLEN", f.keys.farSide})
	if err != nil {
		return err
	}
	f.mu.Lock()
	for w, text := range fresh {
		if w.Change.text() == text {
			w.text = text
		}
	}
	f.mu.Unlock()
	if n, _ := replies[2].(int64); n < 2*maxFar {
		return nil
	}
	names := []string{}
	err = f.scan(ctx, f.keys.farSide, perBeat, 8*maxFar, func(name, _ string) { names = append(names, name) })
	if err != nil || len(names) <= maxFar {
		return err
	}
	slices.Sort(names)
	return f.remove(ctx, f.keys.farSide, names[:len(names)-maxFar])
}

// farChanges returns what processes told of far sides. Every program can write it, so it says nothing else.
func (f *Fleet) farChanges(ctx context.Context) (all []Change, err error) {
	if f.server == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, w := range f.pauses.far {
			all = append(all, w.Change)
		}
		return all, nil
	}
	soon := f.Now().Add(time.Minute)
	err = f.scan(ctx, f.keys.farSide, perScan, 8*maxFar, func(_, text string) {
		c, err := parseChange(text)
		if _, _, wrong := period.Parse("for", c.For); err != nil || wrong != nil || c.Keys < 0 || c.At.After(soon) || !strings.Contains(c.By, " on ") {
			return
		}
		all = append(all, Change{
			At: c.At, By: printable.Text(c.By, maxProcessText), Reason: farReason, What: "pause", Rule: printable.Text(c.Rule, MaxSaid),
			Key: printable.Text(c.Key, MaxSaid), Keys: c.Keys, For: c.For, FarSide: true,
		})
	})
	return all, err
}
