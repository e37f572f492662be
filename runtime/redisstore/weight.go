package redisstore

import "github.com/ratelimit-go/ratelimit/internal/engine"

// A server does nothing else while a run is decided. So a batch is weighed by the time that its run may take, and not by its requests. The unit
// is half the time of a plain claim by FCALL on a busy server, about 4 us. A batch weighs at most maxWeight, about 0.8 ms; a heavier request is sent
// alone.
//
// For example, a batch has 100 plain calls of one rule, 50 of two rules or with a report, or 14 calls that wait or are settled. At limit
// 10,000 it has 3 refunds of a sliding window, because the script looks for their permits. At limit 1,000 it has 8 calls of a concurrency rule
// with one key, or 2 with different keys, because the script reads up to 1,000 entries of each key.
const (
	maxWeight    = 200
	plainWeight  = 2  // of a claim of a plain call
	reportWeight = 4  // of one that asks for a report
	otherWeight  = 14 // of any other claim
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
		each := int64(plainWeight)
		switch {
		case r.adjust || r.call.Lease > 0 || !r.call.IsPlain():
			each = otherWeight
		case r.call.Report:
			each = reportWeight
		}
		for i := range r.call.Claims {
			c := &r.call.Claims[i]
			weight += each + c.Rule.Kind.Work(c, r.permits(c)) + int64(len(r.call.IDs)) // an entry of a running call that is written
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
