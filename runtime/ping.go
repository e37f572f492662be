package ratelimit

import (
	"cmp"
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Ping returns nil if the limiter is ready to decide: its store answers and permits all that decisions need, and the overrides and blocks
// in it have been read. It is for readiness checks such as /readyz, and for the start of a program. Decisions do not need it. Some seconds
// after a rule is first used, the limiter itself checks that the store permits what the rule needs, and logs one line if not.
//
// What decisions need depends on their rules. Ping checks for the rules that limiters of the prefix used within a day, and for those that
// were given to [Limiter.Check].
//
// The error is a *StoreError, or wraps the context's. A *StoreError says what to do about an unknown user, a wrong password, a missing
// permission, a server that is too old, or a read-only replica.
func (l *Limiter) Ping(ctx context.Context) error {
	store, pings := l.store.(engine.Pinger)
	if pings {
		if err := store.Ping(ctx, l.prefix, l.used.own()); err != nil {
			return storeError(ctx, "", err)
		}
	}
	var unread error
	err := l.settings.alone(ctx, func() { unread = l.settings.read(ctx) })
	if err = cmp.Or(err, unread); err != nil || !pings {
		return storeError(ctx, "", err)
	}
	return l.pingOthers(ctx, store)
}

// pingOthers asks for what rules need that this limiter has not used, but others have.
func (l *Limiter) pingOthers(ctx context.Context, store engine.Pinger) error {
	rules, err := l.Rules(ctx)
	if err != nil {
		return err
	}
	var others []*engine.Rule
	for _, rule := range rules {
		if p, err := rule.prepare(""); err == nil && !l.used.knows(p) {
			others = append(others, p.numbers)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return storeError(ctx, "", store.Ping(ctx, l.prefix, others))
}
