package redisstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

const maxAhead = 10_000 // permits of one lease

var began = time.Now()

// clock returns the time on this process's monotonic clock.
func clock() time.Duration { return time.Since(began) }

// lease holds permits that were taken ahead for calls with the same rules and subjects. Its time begins before the request for it is sent, so
// it ends here no later than on the server. A lease has at most as many permits as were used in the time of a lease before.
type lease struct {
	of     *leased
	fact   *fact
	length time.Duration

	mu     sync.Mutex
	left   int64         // permits that are left
	until  time.Duration // when the permits end; 0 if there are none
	charge *engine.Call  // the call that took the permits
	start  int64         // when it took them, by the server's clock
	sent   time.Duration // when it was sent, by this process's clock
	taking chan struct{} // closed when the caller who takes new permits is done; nil if there is no such caller
	timer  *time.Timer   // gives back the permits that are left at the end; nil before the first charge

	since        time.Duration
	used, before int64 // permits that were used from since on, and in one length of the lease before since
}

// hand admits a call with permits that were taken ahead, if there are enough.
func (l *lease) hand(call *engine.Call) (engine.Verdict, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handLocked(call)
}

func (l *lease) handLocked(call *engine.Call) (engine.Verdict, bool) {
	now, cost := clock(), call.Claims[0].Cost
	if l.left < cost || now >= l.until {
		return engine.Verdict{}, false
	}
	v := l.admit(call, now, cost)
	v.Source = engine.SourceLease
	return v, true
}

// admit charges a call to the lease. The lease must be locked.
func (l *lease) admit(call *engine.Call, now time.Duration, cost int64) engine.Verdict {
	l.left -= cost
	l.use(now, cost)
	for i := range call.Claims {
		c, charge := &call.Claims[i], &l.charge.Claims[i]
		c.Clear()
		c.Charged, c.At, c.Dated = cost, charge.At, true
		if call.Report {
			c.Room, c.Full = charge.Room+l.left, charge.Full
		}
	}
	at := l.start + (now - l.sent).Microseconds()
	return engine.Verdict{Now: at, At: at, Answer: engine.Answer{Admitted: true}}
}

// inUse reports whether the lease has permits, is asking for some, or knows how many to ask for.
func (l *lease) inUse(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left > 0 || l.taking != nil || now-l.since < 2*l.length
}

// use counts permits as used.
func (l *lease) use(now time.Duration, permits int64) {
	if age := now - l.since; age >= l.length {
		l.before = l.used
		if age >= 2*l.length {
			l.before = 0
		}
		l.used, l.since = 0, now
	}
	l.used += permits
}

// count counts the permits of a call that the server admitted without a lease.
func (l *lease) count(call *engine.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(clock(), call.Claims[0].Cost)
}

// wanted returns how many permits to take ahead next: as many as were used in the last length.
func (l *lease) wanted(now time.Duration) int64 {
	l.use(now, 0)
	return min(max(l.used, l.before), maxAhead)
}

// take takes permits ahead and admits a call with them, or waits for another caller who is doing so. It reports whether it has an answer for
// the call. It has none if permits taken ahead would be of no use for other calls, or if others have used them up.
func (l *lease) take(ctx context.Context, call *engine.Call) (v engine.Verdict, answered bool, err error) {
	l.mu.Lock()
	if v, ok := l.handLocked(call); ok { // another caller has just taken permits
		l.mu.Unlock()
		return v, true, nil
	}
	if taking := l.taking; taking != nil {
		l.mu.Unlock()
		select {
		case <-taking:
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
	back := l.close()
	l.mu.Unlock()
	v, err = l.ask(ctx, call, ahead, back)
	return v, err == nil || !strings.HasPrefix(err.Error(), crossSlot), err
}

// ask takes permits ahead from the server. Before that, the server takes back those in back, which are left of the last ones.
func (l *lease) ask(ctx context.Context, call *engine.Call, ahead int64, back *engine.Call) (engine.Verdict, error) {
	charge := clone(call)
	charge.Lease, charge.Ahead, charge.Report, charge.Back = call.Claims[0].Rule.Lease, ahead, true, back
	sent := clock()
	defer l.taken()
	v, err := l.of.next.Decide(ctx, charge)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case !v.Admitted:
		copy(call.Claims, charge.Claims)
		return v, nil
	}
	l.charge, l.start, l.sent, l.left = charge, v.Now, sent, v.Taken
	l.until = sent + time.Duration(v.At-l.start)*time.Microsecond
	if l.timer == nil {
		l.timer = time.AfterFunc(l.until-clock(), func() { _ = l.of.Guard(l.end) })
	} else {
		l.timer.Reset(l.until - clock())
	}
	return l.admit(call, sent, call.Claims[0].Cost), nil
}

// taken wakes the callers who wait for new permits. It does so also after a panic in a hook of the client.
func (l *lease) taken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.taking)
	l.taking = nil
}

// close ends the lease. It returns an adjustment that gives back the permits that are left, or nil. The lease must be locked.
func (l *lease) close() *engine.Call {
	left := l.left
	l.left, l.until = 0, 0
	if left == 0 {
		return nil
	}
	back := clone(l.charge)
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
	back := l.close()
	l.mu.Unlock()
	l.of.giveBack(back)
}

// adjust adjusts the charge of a call that was admitted with the present permits, if the change is the same for all rules. It reports whether it
// did.
func (l *lease) adjust(call *engine.Call) bool {
	if l == nil {
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
