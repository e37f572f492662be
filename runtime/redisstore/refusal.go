package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

const defaultRefusalMemory = 100 * time.Millisecond

// refusal is a call that a server refused a moment ago and would still refuse, so that it is not asked about each such call. A caller who is
// refused usually tries again, and an attacker does so as fast as possible.
//
// A refusal answers calls with the same rules, limits and subjects that cost at least as much. It is remembered until the rules would admit
// the call. That is computed by this process's clock, which is read before the call is sent. The refusal is forgotten earlier when it is older
// than WithRefusalMemory says, or when this process changes a charge of one of its states.
//
// For example, a subject has used up its limit for 30 ms to come. At 0 ms caller A asks the server and is refused. At 10 ms caller B is
// refused from memory, with a delay of 20 ms. At 20 ms another call of the subject gives its permit back, which forgets the refusal, so
// caller C asks the server and is admitted.
//
// The nodes take part: a node remembers a refusal when it reads the reply. Before a goroutine sends a batch, the node answers those of its requests
// that a refusal covers.
type refusal struct {
	call   *engine.Call
	now    int64         // when the server refused, by its clock
	sentAt moment        // before the call was sent
	until  time.Duration // when the refusal ends, by this process's clock
	dropAt time.Duration // when it may be dropped; between until and then, one caller asks the server, and the others wait for its answer
	asked  atomic.Bool   // since the refusal ended, a caller has asked the server again
}

// lastChange returns the number of the last change to the claim's state, or to another state with the same hash.
func (a *answers) lastChange(c *engine.Claim) *atomic.Int64 {
	return &a.changed[hashState(c)%uint64(len(a.changed))]
}

// hasChanged reports whether a state of a call was changed after the change with the given number.
func (a *answers) hasChanged(call *engine.Call, changes int64) bool {
	if a.changes.Load() == changes {
		return false
	}
	for i := range call.Claims {
		if a.lastChange(&call.Claims[i]).Load() > changes {
			return true
		}
	}
	return false
}

// remember stores a refusal, unless one that was sent later is known. sentAt must have been read before the call was sent.
func (a *answers) remember(call *engine.Call, v engine.Verdict, sentAt moment) {
	if a.memory == 0 || !call.IsPlain() {
		return
	}
	f := a.findOrAdd(call)
	if f == nil {
		return
	}
	if other := f.refusal.Load(); other != nil && other.sentAt.at > sentAt.at {
		return
	}
	delay := int64(0)
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Refused {
			delay = max(delay, c.Earliest-v.Now)
		}
	}
	r := &refusal{call: call.Clone(), now: v.Now, sentAt: sentAt, until: sentAt.at + a.memory}
	if delay < a.memory.Microseconds() {
		r.until = sentAt.at + time.Duration(delay)*time.Microsecond
	}
	r.dropAt = r.until + a.memory
	f.refusal.Store(r)
}

// recall answers a call from a remembered refusal in the fact about it. If the refusal has just ended, asked reports whether another caller has
// already asked the server again, so that not all callers do.
func (a *answers) recall(call *engine.Call, f *fact) (v engine.Verdict, known, asked bool) {
	r := f.refusal.Load()
	if r == nil || call.Back != nil || !call.IsPlain() || !r.covers(call) || a.hasChanged(call, r.sentAt.changes) {
		return v, false, false
	}
	now := clock()
	if now >= r.until {
		return v, false, r.asked.Swap(true) && now < r.dropAt
	}
	return r.answer(call, r.now+(now-r.sentAt.at).Microseconds()), true, false
}

// covers reports whether the refusal also applies to a call of the same identity, and has all that the call asks for.
func (r *refusal) covers(call *engine.Call) bool {
	if call.Report && !r.call.Report {
		return false
	}
	for i := range call.Claims {
		if call.Claims[i].Cost < r.call.Claims[i].Cost {
			return false
		}
	}
	return true
}

// answer sets the results in the claims as the server would at the given time. Rules that would no longer refuse are not marked as refused.
func (r *refusal) answer(call *engine.Call, now int64) engine.Verdict {
	for i := range call.Claims {
		c, answer := &call.Claims[i], &r.call.Claims[i]
		c.Clear()
		c.Refused = answer.Refused && answer.Earliest > now
		c.Blocked = c.Refused && c.Rule.Block > 0 // that refusal began a block, or found one
		if answer.Earliest > now {
			c.Earliest = answer.Earliest
		}
		c.KeepQuota(answer, now)
	}
	return engine.Verdict{Now: now, Finding: engine.Finding{Source: engine.SourceMemory}}
}
