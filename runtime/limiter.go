package ratelimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"unique"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// Limiter decides calls. It is safe for concurrent use. Make one with [New]: the zero Limiter is of no use.
type Limiter struct {
	store       decide.Store
	local       decide.Store   // of this instance
	limited     decide.Limited // the store, if it cannot decide every rule
	prefix      string
	fleetPrefix unique.Handle[string]
	localPrefix unique.Handle[string] // another one, so that what counts for the fleet after a failure is not mixed with it
	secret      []byte                // subjects are hashed with it, if there is one
	policy      FailurePolicy
	trigger     func(context.Context, Trigger)
	observers   []func(context.Context, *Event)
	logger      *slog.Logger
	lost        atomic.Bool // the store failed the last time

	requested ruleCache
	overrides Overrides
}

// maxLocalKeys bounds what a limiter counts by itself.
const maxLocalKeys = 1_000_000

// New returns a limiter that counts in store: memstore.New, redisstore.New and plain.New make one. A nil store panics.
func New(store Store, options ...Option) *Limiter {
	if store == nil {
		panic("ratelimit.New: the store is nil")
	}
	l := &Limiter{store: store, prefix: DefaultPrefix, local: memory.NewLike(store, maxLocalKeys), logger: slog.Default()}
	l.limited, _ = store.(decide.Limited)
	for _, option := range options {
		option(l)
	}
	l.fleetPrefix, l.localPrefix = unique.Make(l.prefix), unique.Make(l.prefix+":instance")
	l.overrides.start(l)
	return l
}

// subject returns whom a key of a call names.
func (l *Limiter) subject(text string) string {
	if l.secret != nil && text != "" {
		text = hashed(l.secret, text)
	}
	return key.Subject(text)
}

// noteStore logs when the store is lost, and when it is back.
func (l *Limiter) noteStore(ctx context.Context, err error) {
	if lost := err != nil; lost == l.lost.Load() || l.lost.Swap(lost) == lost {
		return
	}
	if err != nil {
		l.logger.WarnContext(ctx, "the store of the rate limits fails; calls follow their failure policies", "err", oneLine(err.Error()))
	} else {
		l.logger.InfoContext(ctx, "the store of the rate limits is back")
	}
}
