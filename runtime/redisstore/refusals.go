package redisstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const (
	maxRefusals          = 16_384
	defaultRefusalMemory = 100 * time.Millisecond
)

// refusals remembers calls that the server refused a moment ago and would still refuse, so that the server is not asked for each of them. A
// refusal answers calls with the same rules, subjects and costs. It is remembered until the rules would admit the call, by this process's
// clock, which is read before the call is sent. It is forgotten earlier after the time in memory, or when this process changes a charge of one
// of its states.
type refusals struct {
	memory time.Duration // how long a refusal is remembered at most; 0 means not at all
	known  atomic.Int64  // len(byCall)

	mu     sync.RWMutex
	byCall map[uint64]*refusal

	changes atomic.Int64       // the number of changes that this process made to charges
	changed [4096]atomic.Int64 // the number of the last change to a state, by the state's hash
}

type refusal struct {
	call        *engine.Call
	now         int64         // when the server refused, by its clock
	sent, until time.Duration // when the call was sent, and when the refusal ends, by this process's clock
	changes     int64
	asked       atomic.Bool // since the refusal ended, a caller has asked the server again
}

func newRefusals() *refusals {
	return &refusals{memory: defaultRefusalMemory, byCall: make(map[uint64]*refusal)}
}

// id returns a hash of a call's rules, subjects and costs.
func (m *refusals) id(call *engine.Call) uint64 {
	id := hash(call)
	for i := range call.Claims {
		id = 31*id + uint64(call.Claims[i].Cost)
	}
	return id
}

// change returns the number of the last change to the claim's state, or to another state with the same hash.
func (m *refusals) change(c *engine.Claim) *atomic.Int64 {
	return &m.changed[hashState(c)%uint64(len(m.changed))]
}

// forget forgets refusals by the states of a call, which were changed.
func (m *refusals) forget(call *engine.Call) {
	now := m.changes.Add(1)
	for i := range call.Claims {
		m.change(&call.Claims[i]).Store(now)
	}
}

// hasChanged reports whether a state of a call was changed after the change with the given number.
func (m *refusals) hasChanged(call *engine.Call, changes int64) bool {
	if m.changes.Load() == changes {
		return false
	}
	for i := range call.Claims {
		if m.change(&call.Claims[i]).Load() > changes {
			return true
		}
	}
	return false
}

// remembers reports whether refusals of such a call are remembered.
func (m *refusals) remembers(call *engine.Call) bool {
	if m.memory == 0 || call.Peek || call.UpTo || call.Refused {
		return false
	}
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Wait > 0 || c.Mode != engine.Enforce || c.Rule.Kind.CountsMembers() {
			return false
		}
	}
	return true
}

// remember stores a refusal. sent and changes must have been read before the call was sent.
func (m *refusals) remember(call *engine.Call, v engine.Verdict, sent time.Duration, changes int64) {
	if !m.remembers(call) {
		return
	}
	delay := int64(0)
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Refused {
			delay = max(delay, c.Earliest-v.Now)
		}
	}
	r := &refusal{call: clone(call), now: v.Now, sent: sent, changes: changes}
	r.until = sent + m.memory
	if delay < m.memory.Microseconds() {
		r.until = sent + time.Duration(delay)*time.Microsecond
	}
	id := m.id(call)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byCall) == maxRefusals {
		clear(m.byCall) // the server is asked once more for those that have not ended
	}
	m.byCall[id] = r
	m.known.Store(int64(len(m.byCall)))
}

// recall answers a call from a remembered refusal. If the refusal has just ended, asked reports whether another caller has already asked the
// server again, so that not all callers do.
func (m *refusals) recall(call *engine.Call) (v engine.Verdict, known, asked bool) {
	if m.known.Load() == 0 || !m.remembers(call) {
		return v, false, false
	}
	id := m.id(call)
	m.mu.RLock()
	r := m.byCall[id]
	m.mu.RUnlock()
	if r == nil || !r.answers(call) || m.hasChanged(call, r.changes) {
		return v, false, false
	}
	now := clock()
	if over := now - r.until; over >= 0 {
		return v, false, r.asked.Swap(true) && over < m.memory
	}
	return r.tell(call, r.now+(now-r.sent).Microseconds()), true, false
}

// answers reports whether the refusal also applies to a call, and has all that the call asks for.
func (r *refusal) answers(call *engine.Call) bool {
	if call.Report && !r.call.Report || !equal(r.call, call) {
		return false
	}
	for i := range call.Claims {
		if call.Claims[i].Cost != r.call.Claims[i].Cost {
			return false
		}
	}
	return true
}

// tell sets the results in the claims as the server would at the given time. Rules that would no longer refuse are not marked as refused.
func (r *refusal) tell(call *engine.Call, now int64) engine.Verdict {
	for i := range call.Claims {
		c, told := &call.Claims[i], &r.call.Claims[i]
		c.Clear()
		c.Refused, c.Room = told.Refused && told.Earliest > now, told.Room
		if told.Earliest > 0 {
			c.Earliest = max(told.Earliest, now)
		}
		if told.Full > 0 {
			c.Full = max(told.Full, now)
		}
	}
	return engine.Verdict{Now: now, Answer: engine.Answer{Source: engine.SourceMemory}}
}
