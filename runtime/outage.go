package ratelimit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// quiet is how long no call must have failed before the store counts as back. If one of several servers is lost, some calls fail while
// others succeed.
const quiet = 5 * time.Second

// outage is what a limiter knows of the time in which its store fails.
type outage struct {
	began, last             atomic.Int64 // when the store first and last failed, in nanoseconds; last is 0 if the store is not lost
	failed, passed, counted atomic.Int64 // calls: not decided, let pass by nobody's count, and counted in this process
}

// add counts a call that a failure policy has decided.
func (o *outage) add(call *engine.Call, err error) {
	switch {
	case call.Peek:
	case err != nil:
		o.failed.Add(1)
	case call.Claims[0].By == engine.ByFallback:
		o.counted.Add(1)
	default:
		o.passed.Add(1)
	}
}

// noteFailure notes that the store failed to decide a call. If the store is lost now, it logs that and tells observers.
func (l *Limiter) noteFailure(ctx context.Context, err error) {
	now := l.store.Time().UnixNano()
	if l.outage.last.Swap(now) == 0 {
		l.outage.began.Store(now)
		l.logger.WarnContext(ctx, "the rate limit store fails; failure policies decide", "err", oneLine(err.Error()))
		l.tell(ctx, EventStoreLost, "", err)
	}
	l.fleet.StoreFailed(err)
}

// noteSuccess notes that the store has decided a call.
func (l *Limiter) noteSuccess(ctx context.Context) {
	if last := l.outage.last.Load(); last != 0 {
		l.noteBack(ctx, last)
	}
}

// noteBack logs that the store is back and tells observers, if it failed last a while ago.
func (l *Limiter) noteBack(ctx context.Context, last int64) {
	o := &l.outage
	if l.store.Time().UnixNano()-last < int64(quiet) || !o.last.CompareAndSwap(last, 0) {
		return
	}
	l.logger.InfoContext(ctx, "the rate limit store is back", "failed_for", time.Duration(last-o.began.Load()).String(),
		"calls_failed", o.failed.Swap(0), "calls_passed", o.passed.Swap(0), "calls_counted_here", o.counted.Swap(0))
	l.tell(ctx, EventStoreBack, "", nil)
}

// failedLately reports whether a decision failed a short time ago.
func (l *Limiter) failedLately() bool {
	last := l.outage.last.Load()
	return last != 0 && l.store.Time().UnixNano()-last < int64(quiet)
}
