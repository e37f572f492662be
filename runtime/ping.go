package ratelimit

import (
	"cmp"
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Ping returns nil if the limiter is ready to decide: its store answers and permits all that decisions need, and the overrides and blocks
// in it have been read. It is for readiness checks such as /readyz, and for the start of a program. Decisions do not need it.
//
// The error is a *StoreError that says what to do about an unknown user, a wrong password, a missing permission, a server that
// is too old, or a read-only replica; or it wraps the context's.
func (l *Limiter) Ping(ctx context.Context) error {
	if store, ok := l.store.(engine.Pinger); ok {
		if err := store.Ping(ctx, l.prefix); err != nil {
			return storeError(ctx, "", err)
		}
	}
	if l.overrides.store == nil {
		return nil
	}
	var unread error
	err := l.overrides.alone(ctx, func() { unread = l.overrides.read(ctx) })
	return storeError(ctx, "", cmp.Or(err, unread))
}
