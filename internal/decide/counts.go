package decide

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/parts"
)

// Counts is a call on the counts of some rules: one that is decided, or a change of what was counted. It knows who has each count. This process has
// those of instance scope, and the limiter's store the others.
type Counts struct {
	engine.Call
	limiter *Limiter
	rules   []*Rule // of the claims
	by      counter // who has the counts of fleet scope
	failure error   // why the store failed, if a failure policy decided
}

// counter is who has the counts of fleet scope.
type counter uint8

const (
	byStore    counter = iota
	byFallback         // this process: the store failed, and the failure policy counts here
	byNobody           // the store failed, and the failure policy let the call pass
)

// Change returns a change of counts, which has none yet.
func (l *Limiter) Change(change engine.Change) *Counts {
	c := &struct {
		Counts
		claim [1]engine.Claim // most changes are of one count; this saves them two allocations
		rule  [1]*Rule
	}{}
	c.Prefix, c.Change, c.Claims = l.prefix, change, c.claim[:0]
	c.limiter, c.rules = l, c.rule[:0]
	return &c.Counts
}

// Put adds a claim of a rule. A call has one claim on a count: if it has one already, Put returns that one, and adds none.
func (c *Counts) Put(rule *Rule, claim engine.Claim) (same *engine.Claim) {
	for i := range c.Claims {
		if other := &c.Claims[i]; other.Subject == claim.Subject && c.rules[i].countsWith(rule) {
			return other
		}
	}
	c.Claims, c.rules = append(c.Claims, claim), append(c.rules, rule)
	return nil
}

// Adjust changes what was counted, as the Deltas of the claims say.
func (c *Counts) Adjust(ctx context.Context) error { return c.split().Adjust(ctx, &c.Call) }

// Reset forgets what was counted, and returns how many of the counts there were.
func (c *Counts) Reset(ctx context.Context) (found int, err error) {
	return c.split().Reset(ctx, &c.Call)
}

// split splits the claims by who has their counts. For example, a call has a rule of instance scope and one of fleet scope. This process charges the
// first rule. If the store then refuses the second one, the permits of the first go back.
func (c *Counts) split() parts.Split {
	return func(i int) (string, backend.Decider) {
		if c.rules[i].Instance {
			return "1", c.limiter.instance() // first in order: a refusal of this process spares the store a charge that goes back
		}
		return "2", (*ofFleet)(c)
	}
}

// ruleOf returns the rule of a claim of the call, or of a part of it.
func (c *Counts) ruleOf(claim *engine.Claim) *Rule {
	i := slices.IndexFunc(c.rules, func(r *Rule) bool { return &r.Numbers == claim.Rule })
	return c.rules[i]
}
