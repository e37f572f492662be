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

// refusals remembers calls that the server refused a moment ago and would refuse still, so that it is not asked for each of them.
// A refusal answers calls under the same rules and subjects that cost the same: one that costs more is refused for longer. It is
// known no longer than the rules refuse by the clock of this process, read before the call was sent, and no longer than memory; and
// until a charge of one of its states is changed by this process.
type refusals struct {
	memory time.Duration // how long a refusal is remembered at most; 0 is not at all
	known  atomic.Int64  // len(byCall)

	mu     sync.RWMutex
	byCall map[uint64]*refusal

	changes atomic.Int64       // how many charges were changed here
	changed [4096]atomic.Int64 // the last change of a state, by its hash
}

type refusal struct {
	call        *engine.Call
	now         int64         // of the server, when it refused
	sent, until time.Duration // by this process's clock
	changes     int64
	asked       atomic.Bool // a caller has asked the server again since it ended
}

func newRefusals() *refusals {
	return &refusals{memory: defaultRefusalMemory, byCall: make(map[uint64]*refusal)}
}

// id is a hash of what a remembered call and one that it answers have in common.
func (m *refusals) id(call *engine.Call) uint64 {
	id := hash(call)
	for i := range call.Claims {
		id = 31*id + uint64(call.Claims[i].Cost)
	}
	return id
}

// change returns the last change of the claim's state, or of another one with its hash.
func (m *refusals) change(c *engine.Claim) *atomic.Int64 {
	return &m.changed[hashState(c)%uint64(len(m.changed))]
}

// forget takes in that the states of a call were changed.
func (m *refusals) forget(call *engine.Call) {
	now := m.changes.Add(1)
	for i := range call.Claims {
		m.change(&call.Claims[i]).Store(now)
	}
}

// hasChanged reports whether a state of a call was changed after a number of changes.
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

// remembers reports whether the refusal of a call may be remembered, and answer it.
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

// remember takes in a refusal. The time and the number of changes are those before the call was sent.
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
		clear(m.byCall) // what has not ended is asked for once more
	}
	m.byCall[id] = r
	m.known.Store(int64(len(m.byCall)))
}

// recall answers a call that is known to be refused. Where that has just ended, it reports whether another caller has asked the server
// again, so that not all do.
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

// answers reports whether the refusal means that a call is refused, and tells all that the call asks for.
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

// tell fills in the claims as the server would, at a time. What does not refuse any more is left out.
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
	return engine.Verdict{Now: now, Remembered: true}
}
