package ratelimit

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Ping returns nil if the limiter is ready to decide: its store answers and grants all permissions that decisions need, and the overrides and
// blocks in it have been read. Use Ping in readiness checks such as
// /readyz, and when a program starts. Decisions do not need it. Some seconds after a wrapper is made or a rule is first used, the limiter itself checks the
// permissions that the rule needs, and logs one line if some are missing.
//
// The permissions that decisions need depend on their rules. Ping checks those of the rules that limiters of the prefix used within the last
// day, and of the rules that were given to [Limiter.Check].
//
// The error is a *StoreError, or wraps the context's. A *StoreError says what to do about an unknown user, a wrong password, a missing
// permission, a server that is too old, or a read-only replica.
func (l *Limiter) Ping(ctx context.Context) error {
	err := l.store.Ping(ctx, l.prefix, l.used.numbers())
	if err == nil {
		err = l.fleet.Follow(ctx)
	}
	if err != nil {
		return storeError(ctx, "", err)
	}
	return l.pingOthers(ctx)
}

// pingOthers checks the permissions that rules need which only other limiters have used.
func (l *Limiter) pingOthers(ctx context.Context) error {
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
	return storeError(ctx, "", l.store.Ping(ctx, l.prefix, others))
}
