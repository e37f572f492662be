package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// run holds the calls that one execution of the script decides. On a cluster, all are in one slot.
type run struct {
	lua.Run
	calls []runCall
	reply any
	err   error
}

// runCall is a call in a run: that of one request, or one that stands for several equal requests.
type runCall struct {
	call     *engine.Call
	requests []*request
}

// runsOf puts the requests of a batch that have to be sent into as few runs as possible: one, or one for each slot if subjects may be on
// different servers.
func (n *node) runsOf(b *batch) []*run {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := slices.DeleteFunc(slices.Clone(b.requests), func(r *request) bool {
		return r.gone || b.done != nil && r.recalled(&n.store.answers)
	})
	var runs []*run
	now, split := n.now(), n.store.servers.Split.Load()
	bySubject := make(map[string]*run)
	for _, j := range join(requests) {
		subject := ""
		if split {
			subject = j.call.Claims[0].Subject
		}
		j.requests[0].now = now
		r := bySubject[subject]
		if r == nil {
			r = new(run)
			bySubject[subject], runs = r, append(runs, r)
		}
		if r.calls = append(r.calls, j); j.requests[0].adjust {
			r.AddAdjustment(j.call, now)
		} else {
			r.AddDecision(j.call, now)
		}
	}
	return runs
}

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
			j.call = j.call.Clone()
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

// answer answers the requests of a run. It notes which calls were refused, which charges were changed, and whether states were damaged.
func (r *run) answer(s *store, sentAt moment) {
	replies, err := []any{r.reply}, r.err
	if len(r.calls) > 1 && err == nil {
		var ok bool
		if replies, ok = r.reply.([]any); !ok || len(replies) != len(r.calls) {
			err = lua.ErrReply
		}
	}
	for i := range r.calls {
		j := &r.calls[i]
		if err != nil {
			j.fail(err)
		} else {
			j.read(replies[i])
		}
		first := j.requests[0]
		if first.adjust {
			s.answers.forget(first.call)
		} else if first.err == nil && !first.verdict.Admitted {
			s.answers.remember(first.call, first.verdict, sentAt)
		}
		if first.err == nil && first.verdict.Damaged {
			s.servers.TellDamage()
		}
	}
}

// read reads the script's reply into the requests of a call.
func (j *runCall) read(reply any) {
	switch r := j.requests[0]; {
	case r.adjust:
		r.verdict, r.err = lua.ReadAdjustment(reply, r.call)
	case len(j.requests) == 1:
		r.verdict, r.err = lua.ReadDecision(reply, r.call)
	default:
		v, err := lua.ReadDecision(reply, j.call)
		if err != nil {
			j.fail(err)
			return
		}
		j.divide(v)
	}
}

func (j *runCall) fail(err error) {
	for _, r := range j.requests {
		r.err = err
	}
}

// divide gives each of the joined requests its part of the answer. The first ones to arrive are admitted. The others ask again, because the
// answer does not say why they are refused.
func (j *runCall) divide(v engine.Verdict) {
	for i, r := range j.requests {
		n := int64(i) + 1
		if v.Admitted && n > v.Taken {
			r.err = errAgain
			continue
		}
		r.verdict, r.err = engine.Verdict{Now: v.Now, At: v.At, Finding: engine.Finding{Admitted: v.Admitted, Damaged: v.Damaged}}, nil
		for k := range r.call.Claims {
			c, answer := &r.call.Claims[k], j.call.Claims[k]
			answer.Cost, answer.Delta = c.Cost, c.Delta
			if v.Admitted {
				answer.Charged = 1
				answer.Room += v.Taken - n
			}
			if !j.call.Report {
				answer.Room, answer.Full, answer.More = 0, 0, 0
			}
			*c = answer
		}
	}
}
