package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// leased is a decider that takes permits ahead for calls whose rules have leases, and hands them out itself. So a process with many calls for
// one subject asks the server a few times a second instead of for each call.
//
// For example, the rule has lease=200ms, and the subject used 50 permits in the last 200 ms. Caller A, who is the first, asks the server for 50
// permits instead of one. Caller B comes before the reply and waits for it. Then both have one of the 50. Caller C comes 100 ms later and has
// another one at once. At the end of the 200 ms the 47 that are left go back to the server.
type leased struct {
	*store
	next engine.Decider
}

// Decide implements engine.Decider.
func (d *leased) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	l := d.lease(call)
	if l == nil {
		return d.next.Decide(ctx, call)
	}
	if v, ok := l.hand(call); ok {
		return v, nil
	}
	if !l.fact.isRefused() {
		if v, answered, err := l.take(ctx, call); answered {
			return v, err
		}
	}
	v, err := d.next.Decide(ctx, call)
	if err == nil && v.Admitted {
		l.count(call)
	}
	return v, err
}

// leasable reports whether permits for a call may be taken ahead. The call must take the same number from each rule, all on one server.
func (d *leased) leasable(call *engine.Call) bool {
	first := &call.Claims[0]
	if first.Rule.Lease == 0 || call.Peek || call.UpTo || call.Refused {
		return false
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Rule.Lease != first.Rule.Lease || c.Cost != first.Cost || c.Wait > 0 || c.Mode != engine.Enforce || c.Rule.Block > 0 || c.Rule.Pausable {
			return false
		}
	}
	return d.subjects.IsWhole(call)
}

// lease returns the lease for a call, or nil if no permits are taken ahead for it.
func (d *leased) lease(call *engine.Call) *lease {
	if !d.leasable(call) {
		return nil
	}
	f := d.known.add(call)
	if f == nil {
		return nil
	}
	if f.lease.Load() == nil {
		length := time.Duration(call.Claims[0].Rule.Lease) * time.Microsecond
		f.lease.CompareAndSwap(nil, &lease{of: d, fact: f, length: length, since: clock()})
	}
	return f.lease.Load()
}

// Adjust implements engine.Decider. It adjusts the charge of a call that was admitted with the present permits of a lease, if the change is the
// same for all rules.
func (d *leased) Adjust(ctx context.Context, call *engine.Call) error {
	if call.Claims[0].Dated {
		if f := d.known.find(call); f != nil && f.lease.Load().adjust(call) {
			return nil
		}
	}
	return d.next.Adjust(ctx, call)
}

// Reset implements engine.Decider.
func (d *leased) Reset(ctx context.Context, call *engine.Call) (int, error) {
	defer d.endLeases(call)
	return d.next.Reset(ctx, call)
}

// endLeases ends the leases of states that were reset. The permits that are left are given back only to states that were not reset.
func (d *leased) endLeases(reset *engine.Call) {
	isReset := func(c engine.Claim) bool {
		return slices.ContainsFunc(reset.Claims, func(r engine.Claim) bool {
			return r.Subject == c.Subject && r.Rule.Name == c.Rule.Name && r.Rule.Tag == c.Rule.Tag
		})
	}
	var ended []*lease
	d.known.mu.RLock()
	for _, f := range d.known.byCall {
		if l := f.lease.Load(); l != nil && f.call.Prefix == reset.Prefix && slices.ContainsFunc(f.call.Claims, isReset) {
			ended = append(ended, l)
		}
	}
	d.known.mu.RUnlock()
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
			d.giveBack(back)
		}
	}
}

// giveBack gives back permits that were not used. If that fails, they count as used until their window ends.
func (d *leased) giveBack(call *engine.Call) {
	if call != nil && len(call.Claims) > 0 {
		_ = d.next.Adjust(context.Background(), call)
	}
}
