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

// lease is what was taken ahead for calls under the same rules and subjects. It lasts from the reading of the clock before it was asked
// for, so it ends here no later than on the server. Each lease is as large as the use in the last such time, or smaller.
type lease struct {
	store  *store
	call   *engine.Call // one of the calls, to know them by
	id     uint64
	length time.Duration

	mu     sync.Mutex
	left   int64         // permits
	until  time.Duration // when it ends; 0 if there is none
	charge *engine.Call  // which took the permits
	start  int64         // when, by the server's clock
	sent   time.Duration // and no earlier, by this process's
	taking chan struct{} // closed when the caller who takes the next one is done; nil if nobody does
	timer  *time.Timer   // gives back what is left at the end

	used, before int64 // permits, since a time and in a length before that
	since        time.Duration
}

// hand admits a call by permits that were taken ahead.
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
	v.Leased = true
	return v, true
}

// admit charges a call to the lease. The lease is locked.
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
	return engine.Verdict{Now: at, At: at, Admitted: true}
}

// use counts permits that are used.
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

// count counts the permits of a call that the server admitted by itself.
func (l *lease) count(call *engine.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(clock(), call.Claims[0].Cost)
}

// wanted returns how many permits the next lease should have: those used in the last such time.
func (l *lease) wanted(now time.Duration) int64 {
	l.use(now, 0)
	return min(max(l.used, l.before), maxAhead)
}

// take admits a call by the next lease, or by one that another caller takes. It reports whether it has an answer for the call. It has
// none if the next lease would be of use for no other call, or if others have used up the lease.
func (l *lease) take(ctx context.Context, call *engine.Call) (v engine.Verdict, answered bool, err error) {
	l.mu.Lock()
	if v, ok := l.handLocked(call); ok { // another caller has just taken it
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

// ask takes the next lease from the server. What is left of the last one goes back before.
func (l *lease) ask(ctx context.Context, call *engine.Call, ahead int64, back *engine.Call) (engine.Verdict, error) {
	charge := clone(call)
	charge.Lease, charge.Ahead, charge.Report = call.Claims[0].Rule.Lease, ahead, true
	r := &request{call: charge, back: back}
	sent := clock()
	err := l.store.do(ctx, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.taking)
	l.taking = nil
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case !r.verdict.Admitted:
		copy(call.Claims, charge.Claims)
		return r.verdict, nil
	}
	l.charge, l.start, l.sent, l.left = charge, r.verdict.Now, sent, r.verdict.Taken
	l.until = sent + time.Duration(r.verdict.At-l.start)*time.Microsecond
	l.timer.Reset(l.until - clock())
	return l.admit(call, sent, call.Claims[0].Cost), nil
}

// close ends the lease and returns what is left of it, to be given back, or nil. The lease is locked.
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

// end gives back what is left when a lease ends. A lease that is not used any more is forgotten.
func (l *lease) end() {
	l.mu.Lock()
	now := clock()
	if now < l.until || l.taking != nil {
		l.timer.Reset(max(l.until-now, l.length))
		l.mu.Unlock()
		return
	}
	back, unused := l.close(), l.wanted(now) == 0
	if !unused {
		l.timer.Reset(l.length)
	}
	l.mu.Unlock()
	if unused {
		l.store.leases.remove(l)
	}
	l.store.giveBack(back)
}
