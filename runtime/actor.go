package ratelimit

import (
	"context"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// actor is the key of a fleet.Actor in a context.
type actor struct{}

// WithActor says who changes overrides, blocks, pauses or counts with the context that it returns, and why. The store keeps both with what they
// set, and the newest 1,000 changes by actors. Without an actor a change is the program's own, and is not in that list. The store has room for
// 10,000 settings; those without an actor can fill 9,000 of it. by and reason are at most 200 bytes of UTF-8 each. They are what the caller
// claims; nothing proves them.
func WithActor(ctx context.Context, by, reason string) context.Context {
	return context.WithValue(ctx, actor{}, fleet.Actor{By: by, Reason: reason})
}

// actorOf returns the actor of a context. The error is a *RuleError.
func actorOf(ctx context.Context) (fleet.Actor, error) {
	a, _ := ctx.Value(actor{}).(fleet.Actor)
	a.By, a.Reason = strings.Clone(a.By), strings.Clone(a.Reason)
	if reason := a.Check(); reason != "" {
		return a, &RuleError{Argument: "actor", Reason: reason}
	}
	return a, nil
}
