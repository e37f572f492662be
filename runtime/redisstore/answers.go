package redisstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

const (
	maxFacts   = 16_384                 // the number of different calls about which something is known
	sweepEvery = time.Second            // how often facts that are of no more use are forgotten
	minSweep   = 100 * time.Millisecond // how long after a sweep facts that are full may be swept again, besides the timer
)

// answers is a decider. It answers the calls that this process can answer, and asks the servers about the others. What it knows is a fact for all
// calls with the same rules, limits and subjects: a lease has permits for them (see lease.go), and a refusal of the server still holds (see
// refusal.go). The lease is asked first, because permits may come back to it after the refusal.
//
// For example, a lease has one permit left. Caller A, whose call costs 5, is refused by the server. So is caller B from memory, whose call costs
// 5, too. Then calls that the lease admitted give 4 permits back to it, and caller C, whose call costs 5, has the 5 of the lease.
//
// Facts that are of no more use are forgotten every second. So the memory that a flood of refusals takes is free soon after the flood.
type answers struct {
	store  *store        // asks the servers
	memory time.Duration // how long a refusal is remembered at most; 0 means not at all

	changes atomic.Int64       // how many changes this process has made to charges
	changed [4096]atomic.Int64 // which of these was the last change to a state, by the state's hash

	size   atomic.Int64 // len(byCall)
	mu     sync.RWMutex
	byCall map[uint64]*fact
	swept  time.Duration // when facts were last forgotten
	timed  bool          // a timer will sweep; false only while nothing is known
}

var processStart = time.Now()

// clock returns the time on this process's monotonic clock.
func clock() time.Duration { return time.Since(processStart) }

// moment is a time on this process's clock, and the number of the changes that had been made to charges by then.
type moment struct {
	at      time.Duration
	changes int64
}

func (a *answers) moment() moment { return moment{clock(), a.changes.Load()} }

// Decide implements backend.Decider.
func (a *answers) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	var l *lease
	if call.Claims[0].Rule.Lease > 0 {
		l = a.lease(call)
	}
	if l == nil {
		return a.withoutLease(ctx, call, a.find(call))
	}
	if v, answered, err := l.takeAhead(ctx, call); answered {
		return v, err
	}
	v, err := a.withoutLease(ctx, call, l.fact)
	if err == nil && v.Admitted {
		l.noteUse(call)
	}
	return v, err
}

// withoutLease decides a call by a remembered refusal, or else by the servers. f is the fact about the call, or nil.
func (a *answers) withoutLease(ctx context.Context, call *engine.Call, f *fact) (engine.Verdict, error) {
	asked := false
	if f != nil {
		var v engine.Verdict
		var known bool
		if v, known, asked = a.recall(call, f); known {
			return v, nil
		}
	}
	sentAt := a.moment()
	v, err := a.store.ask(ctx, call, asked)
	if err == nil && !v.Admitted && v.Source == engine.SourceStore {
		a.remember(call, v, sentAt) // nodes know only the parts of a call over several servers
	}
	return v, err
}

// Adjust implements backend.Decider. A lease adjusts the charges of calls that were admitted with its present permits. Nodes forget the refusals
// of the states that they adjust.
func (a *answers) Adjust(ctx context.Context, call *engine.Call) error {
	if call.Claims[0].Dated {
		if f := a.find(call); f != nil && f.lease.Load().adjust(call) {
			return nil
		}
	}
	return a.store.bySubject(call, oneServer{store: a.store}).Adjust(ctx, call)
}

// Reset implements backend.Decider.
func (a *answers) Reset(ctx context.Context, call *engine.Call) (int, error) {
	defer a.endLeases(call)
	defer a.forget(call)
	return a.store.bySubject(call, oneServer{store: a.store}).Reset(ctx, call)
}

// forget forgets refusals by the states of a call, which were changed.
func (a *answers) forget(call *engine.Call) {
	now := a.changes.Add(1)
	for i := range call.Claims {
		a.lastChange(&call.Claims[i]).Store(now)
	}
}

// fact is what is known about calls with the same rules, limits and subjects.
type fact struct {
	call    *engine.Call // one of the calls, for comparison
	refusal atomic.Pointer[refusal]
	lease   atomic.Pointer[lease]
}

// find returns the fact about a call, or nil.
func (a *answers) find(call *engine.Call) *fact {
	if a.size.Load() == 0 {
		return nil
	}
	id := hash(call)
	a.mu.RLock()
	f := a.byCall[id]
	a.mu.RUnlock()
	if f == nil || !equal(f.call, call) {
		return nil
	}
	return f
}

// findOrAdd returns the fact about a call, and adds an empty one if there is none. It returns nil if there is no room, or if the fact about another
// call has the same hash.
func (a *answers) findOrAdd(call *engine.Call) *fact {
	if f := a.find(call); f != nil {
		return f
	}
	id := hash(call)
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.byCall[id]
	if f == nil && a.makeRoom() {
		f = &fact{call: call.Clone()}
		if !a.timed {
			a.byCall, a.timed = make(map[uint64]*fact), true
			time.AfterFunc(sweepEvery, a.sweepOften)
		}
		a.byCall[id] = f
		a.size.Store(int64(len(a.byCall)))
	}
	if f == nil || !equal(f.call, call) {
		return nil
	}
	return f
}

// makeRoom reports whether there is room for another fact. It makes room if it can. a must be locked.
func (a *answers) makeRoom() bool {
	if len(a.byCall) == maxFacts && clock()-a.swept >= minSweep {
		a.sweep()
	}
	return len(a.byCall) < maxFacts
}

// sweep forgets facts that are of no more use. The others move to a new map, because a map keeps its memory. a must be locked.
func (a *answers) sweep() {
	a.swept = clock()
	kept := make(map[uint64]*fact)
	for id, f := range a.byCall {
		if f.inUse(a.swept) {
			kept[id] = f
		}
	}
	a.byCall = kept
	a.size.Store(int64(len(kept)))
}

// sweepOften sweeps, and does so again later while something is known.
func (a *answers) sweepOften() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep()
	if a.timed = len(a.byCall) > 0; a.timed {
		time.AfterFunc(sweepEvery, a.sweepOften)
	}
}

// isRefused reports whether the server refused such a call a moment ago.
func (f *fact) isRefused() bool {
	r := f.refusal.Load()
	return r != nil && clock() < r.until
}

func (f *fact) inUse(now time.Duration) bool {
	if r := f.refusal.Load(); r != nil && now < r.dropAt {
		return true
	}
	l := f.lease.Load()
	return l != nil && l.inUse(now)
}

var seed = maphash.MakeSeed()

// hash returns a hash of a call's rules, limits and subjects.
func hash(call *engine.Call) uint64 {
	h := maphash.String(seed, call.Prefix)
	for i := range call.Claims {
		c := &call.Claims[i]
		h = 31*(h^hashState(c)) + uint64(c.Limit)
	}
	return h
}

// hashState returns a hash of the identity of a claim's state.
func hashState(c *engine.Claim) uint64 { return maphash.String(seed, c.Subject) ^ c.Rule.Hash() }

// equal reports whether two calls have the same rules, limits and subjects.
func equal(a, b *engine.Call) bool {
	if a.Prefix != b.Prefix || len(a.Claims) != len(b.Claims) {
		return false
	}
	for i := range a.Claims {
		a, b := &a.Claims[i], &b.Claims[i]
		if a.Subject != b.Subject || a.Limit != b.Limit || a.Burst != b.Burst || a.Anchor != b.Anchor || !alike(a.Rule, b.Rule) {
			return false
		}
	}
	return true
}

func alike(a, b *engine.Rule) bool {
	return a == b || a.Hash() == b.Hash() && a.Name == b.Name && a.Tag == b.Tag && a.Kind == b.Kind && a.Per == b.Per &&
		a.Schedule == b.Schedule && a.Every == b.Every && a.Warmup == b.Warmup && a.Slices == b.Slices && a.Block == b.Block && a.BlockMax == b.BlockMax &&
		a.Pausable == b.Pausable && a.Lease == b.Lease
}
