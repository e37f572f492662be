package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const (
	fresh    = time.Second // how long what was read is shown before it is read again
	patience = 2 * time.Second
)

// known is what was last read from the store. Many open pages cost the server as much as one. If the store is lost, pages go on showing the last
// figures with their age.
type known struct {
	health    read[fleet.Health]
	rules     read[[]ratelimit.UsedRule]
	processes read[[]fleet.Process]
	sums      read[sums]
	reports   map[string]fleet.Report // those in sums, by process
	changes   read[[]fleet.Change]
	history   read[[]fleet.Slot]
}

// read is a value that is read from the store.
type read[T any] struct {
	from  func(context.Context) (T, error)
	mu    sync.Mutex
	value T
	at    time.Time // when it was read; zero if it never was
	tried time.Time
	err   error // of the last attempt
}

// get returns the value, and reads it again if it is older than fresh. Callers who come meanwhile wait for the same reply.
func (r *read[T]) get(ctx context.Context) (T, seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.tried) >= fresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		value, err := r.from(ctx)
		if r.tried, r.err = time.Now(), err; err == nil {
			r.value, r.at = value, r.tried
		}
	}
	return r.value, seen{r.at, r.err}
}

// seen says how old a figure is.
type seen struct {
	At  time.Time // when it was read; zero if it never was
	Err error     // why it could not be read again
}

// Age is how long ago the figure was read.
func (s seen) Age() time.Duration { return time.Since(s.At) }

// Never reports whether there is no figure.
func (s seen) Never() bool { return s.At.IsZero() }

// worse returns the age of figures that were read together with others.
func (s seen) worse(other seen) seen {
	if other.Err != nil || s.Err == nil && other.At.Before(s.At) {
		return other
	}
	return s
}

// readRules reads the processes first, so that the rules need not read them again.
func (c *console) readRules(ctx context.Context) ([]ratelimit.UsedRule, error) {
	if _, at := c.known.processes.get(ctx); at.Err != nil {
		return nil, at.Err
	}
	return c.view.Rules(ctx)
}

// readHistory reads only the slots that may have changed.
func (c *console) readHistory(ctx context.Context) ([]fleet.Slot, error) {
	var since time.Time
	old := c.known.history.value
	if n := len(old) - 2; n > 0 {
		since = old[n].At
	}
	news, err := c.fleet.History(ctx, since)
	if err != nil || len(news) == 0 {
		return nil, err
	}
	first := news[len(news)-1].At.Add(-fleet.HistoryLength)
	old = slices.DeleteFunc(slices.Clone(old), func(s fleet.Slot) bool { return !s.At.After(first) || !s.At.Before(news[0].At) })
	return append(old, news...), nil
}

// follow returns the settings in force. Reading what has not changed is one command.
func (c *console) follow(ctx context.Context) ([]*fleet.Setting, seen) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.fleet.Follow(ctx)
	settings := slices.SortedFunc(c.fleet.InForce().All(), fleet.Compare)
	at := c.fleet.Read()
	if c.fleet.IsLocal() {
		at = time.Now()
	}
	return settings, seen{at, err}
}

// forget makes the next get read the value again.
func (r *read[T]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = time.Time{}
}
