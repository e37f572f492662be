package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// PauseNote is a pause beside a count. It is no setting: a far side asked for it, or a program made it without an actor.
type PauseNote struct {
	Rule    string    `json:"-"` // the name in keys
	Subject string    `json:"-"` // in the form of keys
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"` // by the store's clock
	By      string    `json:"by"`    // the process that noted it last: see Process.String
	FarSide bool      `json:"farSide,omitempty"`
}

// MaxPauses is how many pauses the store has notes of. Those that end last stay.
const MaxPauses = 1000

const (
	pausesLife = longestPause + 24*time.Hour // of the notes
	// longestPause is that of package decide.
	longestPause = 30 * 24 * time.Hour
)

// pauseName returns the name of the note of a pause.
func pauseName(rule, subject string) string { return rule + ":{" + subject + "}" }

// parsePause parses a note of the store.
func parsePause(name, text string) (n PauseNote, err error) {
	err = decode(text, &n, false)
	rule, subject, _ := strings.Cut(name, ":{")
	subject, ok := strings.CutSuffix(subject, "}")
	if err == nil && (!ok || !key.IsSubject(subject) || rule == "" || rule != printable.Text(rule, MaxText)) {
		err = errors.New("expected a rule and a key")
	}
	n.Rule, n.Subject, n.By = rule, subject, printable.Text(n.By, maxProcessText)
	return n, err
}

// Pauses returns the pauses beside counts that processes of the prefix have noted and that have not ended, sorted by rule and subject. more is about how
// many there are besides.
func (f *Fleet) Pauses(ctx context.Context) (all []PauseNote, more int, err error) {
	type answer struct {
		all  []PauseNote
		more int
	}
	a, err := beside(ctx, f, func() (a answer, err error) {
		a.all, a.more, err = f.notedPauses(ctx)
		return a, err
	})
	slices.SortFunc(a.all, func(a, b PauseNote) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Subject, b.Subject))
	})
	return a.all, a.more, err
}

func (f *Fleet) notedPauses(ctx context.Context) (all []PauseNote, more int, err error) {
	if f.server == nil {
		now := f.Now()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.pauses.known {
			if p.Until.After(now) {
				all = append(all, p.PauseNote)
			}
		}
		more = f.pauses.more(now)
	} else {
		live, _, err := f.scanPauses(ctx, perScan)
		if err != nil {
			return nil, 0, err
		}
		processes, err := f.lately(ctx)
		if err != nil {
			return nil, 0, err
		}
		for _, p := range processes {
			more += min(max(0, p.MorePauses), 1_000_000)
		}
		all = slices.Collect(maps.Values(live))
	}
	slices.SortFunc(all, func(a, b PauseNote) int { return b.Until.Compare(a.Until) })
	kept := min(len(all), MaxPauses)
	return all[:kept], more + len(all) - kept, nil
}

// scanPauses returns the notes of the store of pauses that have not ended, and the names of the others.
func (f *Fleet) scanPauses(ctx context.Context, count int) (live map[string]PauseNote, over []string, err error) {
	now, err := f.clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	live = map[string]PauseNote{}
	err = f.scan(ctx, f.keys.pauses, count, 4*MaxPauses, func(name, text string) {
		n, err := parsePause(name, text)
		if left := n.Until.Sub(now); err != nil || left <= 0 || left > pausesLife {
			over = append(over, name)
			return
		}
		live[name] = n
	})
	return live, over, err
}

// prunePauses removes the notes of pauses that are over, and those that end first of too many.
func (f *Fleet) prunePauses(ctx context.Context) error {
	live, over, err := f.scanPauses(ctx, perBeat)
	if err != nil {
		return err
	}
	if len(live) > MaxPauses {
		now := f.Now()
		f.mu.Lock()
		for _, name := range endingLast(live, func(n PauseNote) time.Time { return n.Until })[MaxPauses:] {
			over = append(over, name)
			f.pauses.drop(live[name].Until, now)
		}
		f.mu.Unlock()
	}
	return f.remove(ctx, f.keys.pauses, over)
}
