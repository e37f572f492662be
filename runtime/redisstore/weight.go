package redisstore

import "github.com/ratelimit-go/ratelimit/runtime/internal/engine"

// A server does nothing else while a run is decided. So a batch is weighed by the time that its run may take, and not by its requests. The unit
// is the time of a plain claim by FCALL, about 4 us. A batch weighs at most maxWeight, about 0.8 ms; a heavier request is sent alone.
//
// For example, a batch has 200 plain calls of one rule, 100 of two rules or with a report, or 28 calls that wait or are settled. At limit
// 10,000 it has 3 refunds of a sliding window, because the script looks for their permits. At limit 1,000 it has 16 calls of a concurrency rule
// with one key, or 2 with different keys, because the script reads up to 1,000 entries of each key.
const (
	maxWeight   = 200
	otherWeight = 7 // of a claim that is not plain
)

// fits reports whether a batch that has requests takes others.
func (b *batch) fits(requests []*request) bool { return b.weight+b.weigh(requests) <= maxWeight }

func (b *batch) add(requests []*request) {
	b.weight += b.weigh(requests)
	b.requests = append(b.requests, requests...)
	for _, r := range requests {
		for i := range r.call.Claims {
			if c := &r.call.Claims[i]; c.Rule.Kind.Size(c) > 0 {
				if b.states == nil {
					b.states = make(map[uint64]bool)
				}
				b.states[hashState(c)] = true
			}
		}
	}
}

// weigh returns by how much requests would make a batch heavier. A run reads a state once.
func (b *batch) weigh(requests []*request) (weight int64) {
	for _, r := range requests {
		each := int64(1)
		switch {
		case r.adjust || r.call.Lease > 0 || !r.call.IsPlain():
			each = otherWeight
		case r.call.Report:
			each = 2
		}
		for i := range r.call.Claims {
			c := &r.call.Claims[i]
			weight += each + c.Rule.Kind.Work(c, r.permits(c)) + int64(len(r.call.IDs))/2 // two entries of running calls are written in a unit
			if size := c.Rule.Kind.Size(c); size > 0 && !b.states[hashState(c)] {
				weight += size
			}
		}
	}
	return weight
}

// permits returns how many permits the request may take from a rule at most, or, below 0, gives back.
func (r *request) permits(c *engine.Claim) int64 {
	switch {
	case r.call.Change >= engine.Pauses:
		return 0
	case r.adjust:
		return min(c.Delta, c.Limit)
	}
	return min(max(c.Cost, r.call.Ahead), c.Limit)
}
