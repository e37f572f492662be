package fleet

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// lastCall numbers the calls of this process that run, from a random number on.
var lastCall = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32())
	return n
}()

// CallID returns a number for a call that runs in this process. Its high 32 bits tell the process: see [CallerOf]. Its low 32 bits are unique in the
// process until it has made 2^32 such calls. Among 1,000 processes two have equal high bits with a probability of 1 in 8,600. Two of their calls under
// one key then have equal numbers only if their counts, which begin at random, meet: with 1,000 calls that run at a time, once in 2 million.
func (f *Fleet) CallID() uint64 { return uint64(hashOf(f.self.id))<<32 | uint64(lastCall.Add(1)) }

// CallerOf returns the process of a call by the number of the call, or nil if none of the processes has made it, as far as anybody knows.
func CallerOf(call uint64, all []Process) *Process {
	i := slices.IndexFunc(all, func(p Process) bool { return hashOf(p.ID) == uint32(call>>32) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// hashOf returns a hash of the ID of a process, the FNV-1a. It allocates nothing.
func hashOf(id string) uint32 {
	h := uint32(2166136261)
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	return h
}
