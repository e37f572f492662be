package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

const maxAhead = 10_000 // permits of one lease

// lease holds permits that were taken ahead for calls with the same rules and subjects, whose rules have leases. This process hands them out
// itself. So a process with many calls for one subject asks the server a few times a second instead of for each call. The time of a lease begins
// before the request for it is sent, so it ends here no later than on the server. A lease has at most as many permits as were used in its length
// of time before.
//
// For example, the rule has lease=200ms, and the subject used 50 permits in the last 200 ms. Caller A, who is the first, asks the server
// for 50 permits instead of one. Caller B comes before the reply and waits for it. Then both have one of the 50. Caller C comes 100 ms
// later and has another one at once. At the end of the 200 ms the 47 that are left go back to the server.
type lease struct {
	of     *answers
	fact   *fact
	length time.Duration

	mu      sync.Mutex
	permits int64         // that are left
	until   time.Duration // when the permits end; 0 if there are none
	charge  *engine.Call  // the call that took the permits
	start   int64         // when it took them, by the server's clock
	sentAt  time.Duration // when it was sent, by this process's clock
	taking  chan struct{} // closed when the caller who takes new permits is done; nil if there is no such caller
	timer   *time.Timer   // gives back the permits that are left at the end; nil before the first charge

	since            time.Duration // when the count in usage began
	usage, lastUsage int64         // permits used after since, and permits used in the length before since
}

// leasable reports whether permits for a call may be taken ahead. The call must be plain. All its rules must have the same lease, the same cost, no
// block, and one server.
func (a *answers) leasable(call *engine.Call) bool {
	first := &call.Claims[0]
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Rule.Lease != first.Rule.Lease || c.Cost != first.Cost || c.Rule.Block > 0 {
			return false
		}
	}
	return call.IsPlain() && a.store.isOnOneServer(call)
}

// lease returns the lease for a call, or nil if no permits are taken ahead for it.
func (a *answers) lease(call *engine.Call) *lease {
	if !a.leasable(call) {
		return nil
	}
	f := a.findOrAdd(call)
	if f == nil {
		return nil
	}
	if f.lease.Load() == nil {
		length := time.Duration(call.Claims[0].Rule.Lease) * time.Microsecond
		f.lease.CompareAndSwap(nil, &lease{of: a, fact: f, length: length, since: clock()})
	}
	return f.lease.Load()
}

// endLeases ends the leases of states that were reset. The permits that are left are given back only to states that were not reset.
func (a *answers) endLeases(reset *engine.Call) {
	isReset := func(c engine.Claim) bool {
		return slices.ContainsFunc(reset.Claims, func(r engine.Claim) bool {
			return r.Subject == c.Subject && r.Rule.Name == c.Rule.Name && r.Rule.Tag == c.Rule.Tag
		})
	}
	var ended []*lease
	a.mu.RLock()
	for _, f := range a.byCall {
		if l := f.lease.Load(); l != nil && f.call.Prefix == reset.Prefix && slices.ContainsFunc(f.call.Claims, isReset) {
			ended = append(ended, l)
		}
	}
	a.mu.RUnlock()
	for _, l := range ended {
		l.mu.Lock()
		if taking := l.taking; taking != nil { // these permits may have been asked for before the reset
			l.mu.Unlock()
			<-taking
			l.mu.Lock()
		}
		back := l.takeBack()
		l.mu.Unlock()
		if back != nil {
			back.Claims = slices.DeleteFunc(back.Claims, isReset)
			a.giveBack(back)
		}
	}
}

// giveBack gives back permits that were not used. If that fails, they count as used until their window ends.
func (a *answers) giveBack(call *engine.Call) {
	if call != nil && len(call.Claims) > 0 {
		_ = a.store.bySubject(call, oneServer{store: a.store}).Adjust(context.Background(), call)
	}
}

// hand admits a call with permits that were taken ahead, if there are enough. The lease must be locked.
func (l *lease) hand(call *engine.Call) (engine.Verdict, bool) {
	now, cost := clock(), call.Claims[0].Cost
	if l.permits < cost || now >= l.until {
		return engine.Verdict{}, false
	}
	v := l.admit(call, now, cost)
	v.Source = engine.SourceLease
	return v, true
}

// admit charges a call to the lease. The lease must be locked.
func (l *lease) admit(call *engine.Call, now time.Duration, cost int64) engine.Verdict {
	l.permits -= cost
	l.use(now, cost)
	for i := range call.Claims {
		c, charge := &call.Claims[i], &l.charge.Claims[i]
		c.Clear()
		c.Charged, c.At, c.Dated = cost, charge.At, true
		if call.Report {
			c.KeepQuota(charge, l.start+(now-l.sentAt).Microseconds())
			c.Room += l.permits
		}
	}
	at := l.start + (now - l.sentAt).Microseconds()
	return engine.Verdict{Now: at, At: at, Finding: engine.Finding{Admitted: true}}
}

// inUse reports whether the lease has permits, is asking for some, or knows how many to ask for.
func (l *lease) inUse(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.permits > 0 || l.taking != nil || now-l.since < 2*l.length
}

// use counts permits as used.
func (l *lease) use(now time.Duration, permits int64) {
	if age := now - l.since; age >= l.length {
		l.lastUsage = l.usage
		if age >= 2*l.length {
			l.lastUsage = 0
		}
		l.usage, l.since = 0, now
	}
	l.usage += permits
}

// noteUse counts the permits of a call that the server admitted without a lease.
func (l *lease) noteUse(call *engine.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(clock(), call.Claims[0].Cost)
}

// wanted returns how many permits to take ahead next: as many as were used since the count began, or in the length before that if these are more,
// but at most maxAhead.
func (l *lease) wanted(now time.Duration) int64 {
	l.use(now, 0)
	return min(max(l.usage, l.lastUsage), maxAhead)
}

// takeAhead admits a call with permits that were taken ahead. If there are too few, it takes new ones, or waits for another caller who is doing
// so. It reports whether it has an answer for the call. It has none in four cases:
//   - The server has just refused such a call.
//   - Permits taken ahead would be of no use for other calls.
//   - Others have used up the permits.
//   - The subjects of the call are on different servers, so no lease is possible.
func (l *lease) takeAhead(ctx context.Context, call *engine.Call) (v engine.Verdict, answered bool, err error) {
	l.mu.Lock()
	if v, ok := l.hand(call); ok || l.fact.isRefused() {
		l.mu.Unlock()
		return v, ok, nil
	}
	if taking := l.taking; taking != nil {
		l.mu.Unlock()
		select {
		case <-taking:
			l.mu.Lock()
			defer l.mu.Unlock()
			v, answered = l.hand(call)
			return v, answered, nil
		case <-ctx.Done():
			return v, true, ctx.Err()
		}
	}
	ahead := l.wanted(clock())
	if ahead <= call.Claims[0].Cost {
		l.mu.Unlock()
		return v, false, nil
	}
	l.taking = make(chan struct{})
	unused := l.takeBack()
	l.mu.Unlock()
	v, err = l.ask(ctx, call, ahead, unused)
	return v, err == nil || !strings.HasPrefix(err.Error(), crossSlot), err
}

// ask takes permits ahead from the server. The same batch first gives back the unused permits of the last lease.
func (l *lease) ask(ctx context.Context, call *engine.Call, ahead int64, unused *engine.Call) (engine.Verdict, error) {
	charge := call.Clone()
	charge.Lease, charge.Ahead, charge.Report, charge.Back = call.Claims[0].Rule.Lease, ahead, true, unused
	sentAt := clock()
	defer l.endTaking()
	v, err := l.of.withoutLease(ctx, charge, l.fact)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case !v.Admitted:
		copy(call.Claims, charge.Claims)
		return v, nil
	}
	l.charge, l.start, l.sentAt, l.permits = charge, v.Now, sentAt, v.Taken
	l.until = sentAt + time.Duration(v.At-l.start)*time.Microsecond
	if l.timer == nil {
		l.timer = time.AfterFunc(l.until-clock(), func() { _ = l.of.store.servers.Guard(l.end) })
	} else {
		l.timer.Reset(l.until - clock())
	}
	return l.admit(call, sentAt, call.Claims[0].Cost), nil
}

// endTaking wakes the callers who wait for new permits. It does so also after a panic in a hook of the client.
func (l *lease) endTaking() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.taking)
	l.taking = nil
}

// takeBack takes the permits that are left out of the lease. It returns an adjustment that gives them back, or nil. The lease must be locked.
func (l *lease) takeBack() *engine.Call {
	left := l.permits
	l.permits, l.until = 0, 0
	if left == 0 {
		return nil
	}
	back := l.charge.Clone()
	for i := range back.Claims {
		back.Claims[i].Delta = -left
	}
	return back
}

// end gives back the permits that are left when a lease ends, unless new ones were taken meanwhile.
func (l *lease) end() {
	l.mu.Lock()
	if clock() < l.until {
		l.mu.Unlock()
		return
	}
	back := l.takeBack()
	l.mu.Unlock()
	l.of.giveBack(back)
}

// adjust adjusts the charge of a call that was admitted with the present permits, if the change is the same for all rules. It reports
// whether it did.
func (l *lease) adjust(call *engine.Call) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delta := call.Claims[0].Delta
	if clock() >= l.until || l.permits < delta {
		return false
	}
	for i := range call.Claims {
		if c := &call.Claims[i]; c.Delta != delta || c.At != l.charge.Claims[i].At {
			return false
		}
	}
	l.permits -= delta
	call.ClearDeltas()
	return true
}
