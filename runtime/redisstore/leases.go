package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const maxLeases = 16_384 // the number of different calls for which permits may be taken ahead

// leases holds the leases of this process. A lease that is no longer used removes itself.
type leases struct {
	mu     sync.RWMutex
	byCall map[uint64]*lease
}

func newLeases() *leases { return &leases{byCall: make(map[uint64]*lease)} }

// leasable reports whether permits for a call may be taken ahead. The call must take the same number from each rule, all on one server.
func (s *store) leasable(call *engine.Call) bool {
	first := &call.Claims[0]
	if first.Rule.Lease == 0 || call.Peek || call.UpTo || call.Refused {
		return false
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Rule.Lease != first.Rule.Lease || c.Cost != first.Cost || c.Wait > 0 || c.Mode != engine.Enforce || c.Rule.Block > 0 {
			return false
		}
	}
	return !s.isSplit(call)
}

// lease returns the lease for a call, or nil if no permits are taken ahead for it.
func (s *store) lease(call *engine.Call) *lease {
	if !s.leasable(call) {
		return nil
	}
	id := hash(call)
	l := s.leases.find(id)
	if l == nil {
		l = s.addLease(id, call)
	}
	if l == nil || !equal(l.call, call) {
		return nil
	}
	return l
}

func (m *leases) find(id uint64) *lease {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byCall[id]
}

// addLease adds a lease without permits, or returns one that was added meanwhile. It returns nil if there are too many leases.
func (s *store) addLease(id uint64, call *engine.Call) *lease {
	m := s.leases
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.byCall[id]
	if l == nil && len(m.byCall) < maxLeases {
		l = &lease{store: s, call: clone(call), id: id, length: time.Duration(call.Claims[0].Rule.Lease) * time.Microsecond}
		l.mu.Lock()
		l.timer = time.AfterFunc(l.length, func() { _ = s.Guard(l.end) })
		l.mu.Unlock()
		m.byCall[id] = l
	}
	return l
}

// remove removes a lease that has no permits.
func (m *leases) remove(l *lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byCall[l.id] == l {
		delete(m.byCall, l.id)
	}
}

// giveBack sends an adjustment in the next batch. Nobody waits for it.
func (s *store) giveBack(call *engine.Call) {
	if call == nil || len(call.Claims) == 0 {
		return
	}
	n, err := s.node(context.Background(), call.Claims[0].Subject)
	if err != nil {
		return // the permits count as used until their window ends
	}
	n.adjust(call)
}

// adjust adjusts the charge of a call that was admitted with the present permits of a lease, if the change is the same for all rules. It
// reports whether it did.
func (m *leases) adjust(call *engine.Call) bool {
	if len(call.Claims) == 0 || !call.Claims[0].Dated {
		return false
	}
	l := m.find(hash(call))
	if l == nil || !equal(l.call, call) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delta := call.Claims[0].Delta
	if clock() >= l.until || l.left < delta {
		return false
	}
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Delta != delta || c.At != l.charge.Claims[i].At {
			return false
		}
	}
	l.left -= delta
	for i := range call.Claims {
		call.Claims[i].Delta = 0
	}
	return true
}

// forgetLeases ends the leases of states that were reset. The permits that are left are given back only to states that were not reset.
func (s *store) forgetLeases(reset *engine.Call) {
	isReset := func(c engine.Claim) bool {
		return slices.ContainsFunc(reset.Claims, func(r engine.Claim) bool {
			return r.Subject == c.Subject && r.Rule.Name == c.Rule.Name && r.Rule.Tag == c.Rule.Tag
		})
	}
	var ended []*lease
	s.leases.mu.RLock()
	for _, l := range s.leases.byCall {
		if l.call.Prefix == reset.Prefix && slices.ContainsFunc(l.call.Claims, isReset) {
			ended = append(ended, l)
		}
	}
	s.leases.mu.RUnlock()
	for _, l := range ended {
		l.mu.Lock()
		if taking := l.taking; taking != nil { // these permits may have been asked for before the reset
			l.mu.Unlock()
			<-taking
			l.mu.Lock()
		}
		back := l.close()
		l.mu.Unlock()
		if back != nil {
			back.Claims = slices.DeleteFunc(back.Claims, isReset)
			s.giveBack(back)
		}
	}
}
