package operate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

const (
	fresh  = time.Second      // how long what was read is shown before it is read again
	seldom = 10 * time.Second // the same for what costs the servers more
)

// Read is a value that is read from the store.
type Read[T any] struct {
	from     func(ctx context.Context, old T) (T, error)
	patience *patience
	fresh    time.Duration
	mu       sync.Mutex
	value    T
	at       time.Time // when it was read; zero if it never was
	tried    time.Time
	err      error // of the last attempt
}

// readFrom says where a value comes from. The function gets the value that was read last.
func readFrom[T any](p *Prefix, r *Read[T], from func(ctx context.Context, old T) (T, error)) {
	r.from, r.patience, r.fresh = from, &p.patience, fresh
}

// Get returns the value, and reads it again if it is old. Callers who come meanwhile wait for the same reply.
func (r *Read[T]) Get(ctx context.Context) (T, Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.tried) >= r.fresh {
		var value T
		old := r.value
		err := r.patience.ask(context.WithoutCancel(ctx), func(ctx context.Context) error {
			read, err := fleet.Await(ctx, func() (T, error) { return r.from(ctx, old) })
			value = read
			return err
		})
		if r.tried, r.err = time.Now(), err; err == nil {
			r.value, r.at = value, r.tried
		}
	}
	return r.value, Seen{r.at, r.err}
}

// forget makes the next Get read the value again.
func (r *Read[T]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = time.Time{}
}

// Seen says how old a figure is.
type Seen struct {
	At  time.Time // when it was read, by this process's clock; zero if it never was
	Err error     // why it could not be read again
}

// Age is how long ago the figure was read.
func (s Seen) Age() time.Duration { return time.Since(s.At) }

// Never reports whether there is no figure.
func (s Seen) Never() bool { return s.At.IsZero() }

// Worse returns the age of figures that were read together with others.
func (s Seen) Worse(other Seen) Seen {
	if s.Err == nil && other.Err != nil || (s.Err == nil) == (other.Err == nil) && other.At.Before(s.At) {
		return other
	}
	return s
}

// patience bounds how long one look at everything waits for a store that does not answer.
type patience struct {
	longest time.Duration
	mu      sync.Mutex
	until   time.Time // nobody asks before, because the store has just not answered
	err     error     // what it did instead
}

// ask asks the store. If the store has just kept somebody waiting for nothing, ask does not wait again.
func (p *patience) ask(ctx context.Context, do func(context.Context) error) error {
	p.mu.Lock()
	err, away := p.err, time.Now().Before(p.until)
	p.mu.Unlock()
	if away {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, p.longest)
	defer cancel()
	if err = do(bounded); err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errors.New("the server did not answer in time: see whether it runs, hangs or is slow")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.until, p.err = time.Now().Add(fresh), err
	}
	return err
}
