package fleet

import (
	"context"
	"time"
)

// Beat beats now.
func (f *Fleet) Beat() bool { return f.beat() }

// Clock returns the time by the store's clock. It reads that clock if nobody has read it lately.
func (f *Fleet) Clock(ctx context.Context) (time.Time, error) {
	return alone(ctx, f, func() (time.Time, error) { return f.clock(ctx) })
}

// AddHistory adds a report to the history.
func (f *Fleet) AddHistory(ctx context.Context, p *Report) error { return f.addHistory(ctx, p) }

// Hold keeps others from reading and writing settings until done is called.
func (f *Fleet) Hold() (done func()) {
	f.turn <- struct{}{}
	return func() { <-f.turn }
}

// KnownTexts returns the texts of all settings that this process knows and that are not cleared, by their names.
func (f *Fleet) KnownTexts() map[string]string {
	defer f.Hold()()
	all := map[string]string{}
	for s := range f.changed.settings.all() {
		if !s.Cleared {
			all[s.Name()], _ = s.text()
		}
	}
	return all
}

// KeysOf returns the keys of the fleet of a prefix, some of them with a number or an identity at the end.
func KeysOf(prefix string) []string {
	k := keysOf(prefix)
	return append(k.ofSettings(), k.changes, k.rules, k.sets, k.processes, k.reports+"x", k.history+"1", k.full, k.pauses, k.farSide, k.recover, k.known+"x")
}

// Waiting returns how many edits wait to be written.
func (f *Fleet) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting)
}
