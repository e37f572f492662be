package ratelimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// Limiter decides calls. It is safe for concurrent use. Make one with [New]: the zero Limiter cannot be used.
type Limiter struct {
	store     engine.Store
	process   *memory.Store  // the store, if it is in this process and decides by the system's clock
	local     *memory.Store  // of this instance
	fallback  engine.Store   // in place of store, while that is lost: its counts are not those of this instance
	limited   engine.Limited // the store, if it cannot decide every rule
	sleeper   engine.Sleeper // the store, if calls wait by its clock; else nil
	witness   engine.Witness // the store, if it is told of what it did not decide; else nil
	prefix    string
	hasher    *hasher // of subjects; nil if they stay as they are
	shownKeys bool    // keys of requests are subjects
	policy    FailurePolicy
	trigger   func(context.Context, Trigger)
	observers []func(context.Context, *Event)
	logger    *slog.Logger
	failed    atomic.Int64 // when the store failed the last time, in nanoseconds; 0 if it is not lost

	requested ruleCache
	settings  settings
	used      used
}

// New returns a limiter that counts in store, which memstore.New, redisstore.New or plain.New makes. It panics if store is nil. Any number
// of limiters may share a store; those of one prefix share their counts.
func New(store Store, options ...Option) *Limiter {
	if store == nil {
		panic("ratelimit.New: the store is nil")
	}
	l := &Limiter{store: store, prefix: DefaultPrefix, logger: slog.Default()}
	l.local, l.fallback = memory.NewLike(store, memory.MaxKeys, memory.MaxBytes), memory.NewLike(store, memory.MaxKeys, memory.MaxBytes)
	l.process, _ = store.(*memory.Store)
	l.limited, _ = store.(engine.Limited)
	l.sleeper, _ = store.(engine.Sleeper)
	if w, ok := store.(engine.Witness); ok && w.Watches() {
		l.witness = w
	}
	for _, option := range options {
		option(l)
	}
	if n, ok := store.(engine.Notifier); ok {
		n.Notify(func(notice string, cause error) { l.logger.Warn(notice, "err", oneLine(cause.Error())) })
	}
	l.requested.rules = map[Rule]*prepared{}
	l.settings.start(l)
	l.used.start(l)
	return l
}

// now is the time by which calls wait.
func (l *Limiter) now() time.Time {
	if l.sleeper != nil {
		return l.sleeper.Time()
	}
	return time.Now()
}

// processStart is when this process started, by both clocks.
var processStart = time.Now()

// elapsed is the time since some start, by the clock that calls wait by. The monotonic clock alone takes half the time of [time.Now].
func (l *Limiter) elapsed() time.Duration {
	if l.sleeper != nil {
		return l.sleeper.Time().Sub(processStart)
	}
	return time.Since(processStart)
}

// quiet is how long no call must have failed until the store counts as back. While one of several servers is lost, some calls fail and
// others do not.
const quiet = 5 * time.Second

// noteStore logs when the store is lost, and when it is back, and tells observers. err is what became of a call.
func (l *Limiter) noteStore(ctx context.Context, err error) {
	if err != nil {
		if l.failed.Swap(l.now().UnixNano()) == 0 {
			l.logger.WarnContext(ctx, "the store of the rate limits fails; calls follow their failure policies", "err", oneLine(err.Error()))
			l.tell(ctx, EventStoreLost, "", err)
		}
		return
	}
	last := l.failed.Load()
	if last != 0 && l.now().UnixNano()-last >= int64(quiet) && l.failed.CompareAndSwap(last, 0) {
		l.logger.InfoContext(ctx, "the store of the rate limits is back")
		l.tell(ctx, EventStoreBack, "", nil)
	}
}
