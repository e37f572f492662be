package redisstore

import (
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

// facts holds what this process knows about calls, so that it need not ask the server: one fact for all calls with the same rules, limits
// and subjects. Facts that are of no more use are forgotten every second. So the memory that a flood of refusals takes is free soon after
// the flood.
type facts struct {
	size atomic.Int64 // len(byCall)

	mu     sync.RWMutex
	byCall map[uint64]*fact
	swept  time.Duration // when facts were last forgotten
	timed  bool          // a timer will sweep; false only while nothing is known
}

// fact is what is known about calls with the same rules, limits and subjects.
type fact struct {
	call    *engine.Call // one of the calls, for comparison
	refusal atomic.Pointer[refusal]
	lease   atomic.Pointer[lease]
}

// find returns the fact about a call, or nil.
func (k *facts) find(call *engine.Call) *fact {
	if k.size.Load() == 0 {
		return nil
	}
	id := hash(call)
	k.mu.RLock()
	f := k.byCall[id]
	k.mu.RUnlock()
	if f == nil || !equal(f.call, call) {
		return nil
	}
	return f
}

// add returns the fact about a call, and adds an empty one if there is none. It returns nil if there is no room, or if the fact about another call
// has the same hash.
func (k *facts) add(call *engine.Call) *fact {
	if f := k.find(call); f != nil {
		return f
	}
	id := hash(call)
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.byCall[id]
	if f == nil && k.makeRoom() {
		f = &fact{call: call.Clone()}
		if !k.timed {
			k.byCall, k.timed = make(map[uint64]*fact), true
			time.AfterFunc(sweepEvery, k.sweepOften)
		}
		k.byCall[id] = f
		k.size.Store(int64(len(k.byCall)))
	}
	if f == nil || !equal(f.call, call) {
		return nil
	}
	return f
}

// makeRoom reports whether there is room for another fact. It makes room if it can. k must be locked.
func (k *facts) makeRoom() bool {
	if len(k.byCall) == maxFacts && clock()-k.swept >= minSweep {
		k.sweep()
	}
	return len(k.byCall) < maxFacts
}

// sweep forgets facts that are of no more use. The others move to a new map, because a map keeps its memory. k must be locked.
func (k *facts) sweep() {
	k.swept = clock()
	kept := make(map[uint64]*fact)
	for id, f := range k.byCall {
		if f.inUse(k.swept) {
			kept[id] = f
		}
	}
	k.byCall = kept
	k.size.Store(int64(len(kept)))
}

// sweepOften sweeps, and does so again later while something is known.
func (k *facts) sweepOften() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep()
	if k.timed = len(k.byCall) > 0; k.timed {
		time.AfterFunc(sweepEvery, k.sweepOften)
	}
}

// isRefused reports whether the server refused such a call a moment ago.
func (f *fact) isRefused() bool {
	r := f.refusal.Load()
	return r != nil && clock() < r.until
}

func (f *fact) inUse(now time.Duration) bool {
	if r := f.refusal.Load(); r != nil && now < r.useless {
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
		if a.Subject != b.Subject || a.Limit != b.Limit || a.Burst != b.Burst || !alike(a.Rule, b.Rule) {
			return false
		}
	}
	return true
}

func alike(a, b *engine.Rule) bool {
	return a == b || a.Hash() == b.Hash() && a.Name == b.Name && a.Tag == b.Tag && a.Kind == b.Kind && a.Per == b.Per &&
		a.Schedule == b.Schedule && a.Warmup == b.Warmup && a.Slices == b.Slices && a.Block == b.Block && a.BlockMax == b.BlockMax &&
		a.Pausable == b.Pausable && a.Lease == b.Lease
}
