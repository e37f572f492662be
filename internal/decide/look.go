package decide

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Look returns what people see of a subject's counts under a rule in force: see Counts of the rule. A rule of instance scope has those of this
// process. Calls that bring their limits have the highest one that the rule can have.
func (l *Limiter) Look(ctx context.Context, rule *Rule, subject string) (all []engine.Looked, err error) {
	if err := l.Supports(rule, 0); err != nil {
		return nil, err
	}
	store := l.store
	if rule.Instance {
		store = l.instance().(backend.Store) // package memory has it
	}
	for _, count := range rule.Counts() {
		limit := count.LimitFor(count.MostLimit)
		claim := count.ClaimOn(subject, limit)
		claim.Burst = count.Capacity(claim.Limit)
		seen, err := store.Look(ctx, &engine.Call{Prefix: l.prefix, Claims: []engine.Claim{claim}})
		if err != nil {
			return nil, l.StoreError(ctx, "", err)
		}
		if limit == 0 { // the claim has a limit of 1
			seen.Room, seen.Next = seen.Room-1, time.Time{}
		}
		all = append(all, seen)
	}
	return all, nil
}
