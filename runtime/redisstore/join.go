package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// join returns the calls of the requests. It joins equal plain calls into one, which asks for "up to n of this".
func join(requests []*request) []runCall {
	calls := make([]runCall, 0, len(requests))
	if len(requests) == 1 {
		return append(calls, runCall{requests[0].call, requests})
	}
	first := make(map[uint64]int, len(requests)) // the index of the first call with a hash
	for i, r := range requests {
		if !r.joins() {
			calls = append(calls, runCall{r.call, requests[i : i+1]})
			continue
		}
		id := hash(r.call)
		at, ok := first[id]
		if ok && calls[at].call.Report == r.call.Report && equal(calls[at].call, r.call) {
			calls[at].requests = append(calls[at].requests, r)
			continue
		}
		if !ok {
			first[id] = len(calls)
		}
		calls = append(calls, runCall{r.call, requests[i : i+1 : i+1]})
	}
	for i := range calls {
		if j := &calls[i]; len(j.requests) > 1 {
			j.call = clone(j.call)
			j.call.UpTo = true
			for k := range j.call.Claims {
				j.call.Claims[k].Cost = int64(len(j.requests))
			}
		}
	}
	return calls
}

// joins reports whether the request is a plain call that takes one permit from each rule.
func (r *request) joins() bool {
	if r.adjust || r.solo || r.call.Lease > 0 || !r.call.IsPlain() {
		return false
	}
	return !slices.ContainsFunc(r.call.Claims, func(c engine.Claim) bool {
		return !c.Rule.Kind.Accepts("up-to") || c.Cost != 1 || c.Rule.Block > 0
	})
}

// share gives each of the joined requests its part of the answer. The first ones to arrive are admitted. The others ask again, because the
// answer does not say why they are refused.
func (j *runCall) share(v engine.Verdict) {
	for i, r := range j.requests {
		n := int64(i) + 1
		if v.Admitted && n > v.Taken {
			r.err = errAgain
			continue
		}
		r.verdict, r.err = engine.Verdict{Now: v.Now, At: v.At, Answer: engine.Answer{Admitted: v.Admitted, Damaged: v.Damaged}}, nil
		for k := range r.call.Claims {
			c, answer := &r.call.Claims[k], j.call.Claims[k]
			answer.Cost, answer.Delta = c.Cost, c.Delta
			if v.Admitted {
				answer.Charged = 1
				answer.Room += v.Taken - n
			}
			if !j.call.Report {
				answer.Room, answer.Full = 0, 0
			}
			*c = answer
		}
	}
}
