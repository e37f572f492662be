package operate

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

const (
	fresh  = time.Second     // how long what was read is shown before it is read again
	seldom = 5 * time.Second // the same for what costs the servers more
)

// lasting is how long reading a value may go on after those who look have stopped waiting for it.
const lasting = 10 * time.Second

// Read is a value that is read from the store.
type Read[T any] struct {
	from     func(ctx context.Context, old T) (T, error)
	patience *patience
	fresh    time.Duration
	mu       sync.Mutex
	value    T
	at       time.Time // when it was read; zero if it never was
	tried    time.Time
	err      error         // of the last attempt
	reading  chan struct{} // closed when the attempt ends that goes on now; nil if none does
}

// readFrom says where a value comes from. The function gets the value that was read last.
func readFrom[T any](p *Prefix, r *Read[T], from func(ctx context.Context, old T) (T, error)) {
	r.from, r.patience, r.fresh = from, &p.patience, fresh
}

// Get returns the value, and reads it again if it is old. Callers who come meanwhile wait for the same reply. What comes later than they wait
// is there for the next Get.
func (r *Read[T]) Get(ctx context.Context) (T, Seen) {
	began := time.Now()
	err := r.patience.wait(ctx, r.read)
	value, at := r.seen(err)
	if err == nil && (at.Err != nil || at.At.After(began)) { // it was read now: also that servers do not answer is a value
		r.patience.note(began)
	}
	return value, at
}

// await is Get for what reads another value: it waits until ctx ends.
func (r *Read[T]) await(ctx context.Context) (T, Seen) {
	if done := r.read(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return r.seen(context.Cause(ctx))
		}
	}
	return r.seen(nil)
}

// seen returns the value as it was read last. The error says why nobody waits for a newer one, or is nil.
func (r *Read[T]) seen(err error) (T, Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, Seen{r.at, cmp.Or(err, r.err)}
}

// read begins to read the value again, unless it is fresh or that goes on already. It returns what ends the attempt, or nil.
func (r *Read[T]) read() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != nil || time.Since(r.tried) < r.fresh {
		return r.reading
	}
	done, old := make(chan struct{}), r.value
	r.reading = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lasting)
		defer cancel()
		value, err := fleet.Await(ctx, func() (T, error) { return r.from(ctx, old) })
		if ctx.Err() != nil {
			err = &Silence{lasting}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		defer close(done)
		if r.reading != done { // what it read was forgotten meanwhile
			return
		}
		if r.tried, r.err, r.reading = time.Now(), err, nil; err == nil {
			r.value, r.at = value, r.tried
		}
	}()
	return done
}

// forget makes the next Get read the value again.
func (r *Read[T]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried, r.reading = time.Time{}, nil
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

// IsSlow reports whether the store answers, but later than people wait.
func (s Seen) IsSlow() bool { return errors.Is(s.Err, errSlow) }

// Worse returns the age of figures that were read together with others.
func (s Seen) Worse(other Seen) Seen {
	if s.Err == nil && other.Err != nil || (s.Err == nil) == (other.Err == nil) && other.At.Before(s.At) {
		return other
	}
	return s
}

// patience bounds how long one look at everything waits for a store that does not answer.
type patience struct {
	longest  time.Duration
	probe    func()           // asks the store something short
	answered func() time.Time // when the store last answered anything
	mu       sync.Mutex
	until    time.Time // nobody waits before, because the store has just not answered

	// A store may give up sooner than those who look, each time anew.
	lost     time.Duration // that people have waited for attempts that ended without an answer
	lostFrom time.Time     // when the first of them began
}

// Silence is the error of a store that does not answer.
type Silence struct{ For time.Duration }

func (e *Silence) Error() string { return "the store did not answer within " + e.For.String() }

// errSlow is the error of what takes too long on a store that answers.
var errSlow = errors.New("reading this takes longer than people wait; it goes on")

// wait waits until what begin begins has ended. If the store has just kept somebody waiting for nothing, it does not wait again.
func (p *patience) wait(ctx context.Context, begin func() <-chan struct{}) error {
	began, done := time.Now(), begin()
	if done == nil {
		return nil
	}
	silent, left := p.leftAt(began)
	if !silent {
		bounded, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		probe := time.AfterFunc(left/2, p.probe)
		defer probe.Stop()
		select {
		case <-done:
			return nil
		case <-bounded.Done():
		}
		if p.answered().After(began) || time.Since(began) < left { // or those who look have waited long enough for other parts
			return errSlow
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lost, p.until = 0, time.Now().Add(fresh)
	}
	return &Silence{p.longest}
}

// leftAt reports whether the store has just kept somebody waiting for nothing, and how long people wait otherwise.
func (p *patience) leftAt(now time.Time) (silent bool, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered().After(p.lostFrom) || now.Sub(p.lostFrom) > p.longest+fresh { // that was another look
		p.lost = 0
	}
	return now.Before(p.until), p.longest - p.lost
}

// note adds up how long people waited for attempts that ended without an answer. If that is long enough, the store is silent.
func (p *patience) note(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered().After(began) {
		return
	}
	if p.lost == 0 {
		p.lostFrom = began
	}
	if p.lost += time.Since(began); p.lost >= p.longest {
		p.lost, p.until = 0, time.Now().Add(fresh)
	}
}

// ask asks the store. It gives up if the store is silent, or when ctx ends.
func (p *patience) ask(ctx context.Context, do func(context.Context) error) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, done := make(chan error, 1), make(chan struct{})
	err := p.wait(ctx, func() <-chan struct{} {
		go func() {
			defer close(done)
			answer <- do(ctx)
		}()
		return done
	})
	if errors.Is(err, errSlow) {
		select {
		case <-done:
			err = nil
		case <-ctx.Done():
		}
	}
	if err == nil {
		if err = <-answer; err != nil {
			p.note(began)
		}
	}
	return err
}
