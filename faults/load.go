package faults

import (
	"context"
	"errors"
	"sync"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Outcome is what a client knows of a call.
type Outcome int

const (
	Admitted Outcome = iota
	Refused
	Unknown // the call failed; it may have been charged, now or later
)

// Entry is a call as its client saw it. Times are microseconds since 1970, on the one clock of this machine.
type Entry struct {
	Rule           ratelimit.Rule `json:"-"`
	Key            string
	Cost           int64
	Member         string
	Outcome        Outcome
	Sent, Received int64
	At             int64 // of the server: when the call was admitted, or refused; 0 if the outcome is unknown
	RetryAfter     int64
	Leased         bool  // the permits had been taken ahead
	Over, Back     int64 // of a call that runs: when it was over, and when its permits were certainly back; 0 if that is not known
	Err            error `json:"-"` // of an unknown outcome
}

// Book is what clients saw. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	entries []Entry
}

// Entries returns what is written down by now, in the order of the replies.
func (b *Book) Entries() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Entry(nil), b.entries...)
}

// Of returns the entries of a rule and a key.
func (b *Book) Of(rule, key string) (of []Entry) {
	for _, e := range b.Entries() {
		if e.Rule.Name == rule && e.Key == key {
			of = append(of, e)
		}
	}
	return of
}

// Count returns how many entries have the outcome.
func (b *Book) Count(o Outcome) (n int) {
	for _, e := range b.Entries() {
		if e.Outcome == o {
			n++
		}
	}
	return n
}

// Decide is how a call is made: [ratelimit.Limiter.Allow] or Wait.
type Decide func(context.Context, ...ratelimit.Request) (ratelimit.Decision, error)

// Call makes a call and writes down an entry for each of its requests.
func (b *Book) Call(ctx context.Context, decide Decide, requests ...ratelimit.Request) ratelimit.Decision {
	sent := time.Now().UnixMicro()
	d, err := decide(ctx, requests...)
	e := Entry{Sent: sent, Received: time.Now().UnixMicro()}
	switch {
	case err != nil && !errors.Is(err, ratelimit.ErrTooManyRequests):
		e.Outcome, e.Err = Unknown, err
	case d.Allowed:
		e.At, e.Leased = d.At.UnixMicro(), d.Source == ratelimit.SourceLease
	default:
		e.Outcome, e.At, e.RetryAfter = Refused, d.At.UnixMicro(), d.RetryAfter.Microseconds()
		if ahead := e.At - e.Received; 0 < ahead && ahead < 100_000 && (d.Source == ratelimit.SourceMemory || d.Source == ratelimit.SourceBlock) { // it counts from when the first one was sent
			e.At, e.RetryAfter = e.Received, e.RetryAfter+ahead
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range requests {
		e.Rule, e.Key, e.Cost, e.Member = q.Rule, q.Key, max(1, q.Cost), q.Member
		b.entries = append(b.entries, e)
	}
	return d
}

// Run makes a call that runs for a time, and then releases its permits. It writes down an entry.
func (b *Book) Run(ctx context.Context, decide Decide, d time.Duration, q ratelimit.Request) {
	var own Book
	decision := own.Call(ctx, decide, q)
	if e := &own.entries[0]; e.Outcome == Admitted {
		time.Sleep(d)
		e.Over = time.Now().UnixMicro()
		if err := decision.Release(ctx); err == nil {
			e.Back = time.Now().UnixMicro()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, own.entries...)
}

// wasRemembered reports whether a call was certainly refused without asking the store. A refusal by a block does not say so. If it was remembered, its
// time may be before or after the call, or within a long call.
func wasRemembered(e Entry, d ratelimit.Decision) bool {
	at := d.At.UnixMicro()
	return d.Source == ratelimit.SourceMemory || d.Source == ratelimit.SourceBlock && (at < e.Sent || at > e.Received)
}

// Press lets so many callers make calls one after the other, for a time.
func Press(d time.Duration, callers int, call func(ctx context.Context, caller, n int)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				call(context.WithoutCancel(ctx), caller, n)
			}
		})
	}
	all.Wait()
}
