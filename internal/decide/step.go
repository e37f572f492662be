package decide

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/parts"
)

// Step is all that is decided or changed in one step: a call, with the rules of its claims. So it knows who has each count. This process has the
// counts of instance scope. The limiter's store has those of fleet scope, or this process while the store fails.
type Step struct {
	engine.Call
	limiter *Limiter
	rules   []*Rule // of the claims
	by      holder  // who has the counts of fleet scope

	answered bool  // the store has answered, which therefore works
	failure  error // why the store failed, if failure policies decided
}

// holder is who has the counts of fleet scope.
type holder uint8

const (
	byStore    holder = iota
	byFallback        // this process: the store failed, and the failure policy counts here
	byNobody          // the store failed, and the failure policy let the call pass
)

// Change returns a step that changes counts. It has no claims yet.
func (l *Limiter) Change(change engine.Change) *Step {
	own := &struct {
		Step
		claim [1]engine.Claim // most changes are of one count; this saves them two allocations
		rule  [1]*Rule
	}{}
	own.Prefix, own.Change, own.Claims = l.prefix, change, own.claim[:0]
	own.limiter, own.rules = l, own.rule[:0]
	return &own.Step
}

// Put adds a claim of a rule. A step has one claim on a count: if it has one already, Put returns that one, and adds none.
func (s *Step) Put(rule *Rule, claim engine.Claim) (same *engine.Claim) {
	for i := range s.Claims {
		if other := &s.Claims[i]; other.Subject == claim.Subject && s.rules[i].countsWith(rule) {
			return other
		}
	}
	s.Claims, s.rules = append(s.Claims, claim), append(s.rules, rule)
	return nil
}

// Adjust changes what was counted, as the Deltas of the claims say.
func (s *Step) Adjust(ctx context.Context) error { return s.split().Adjust(ctx, &s.Call) }

// Reset forgets what was counted, and returns how many of the counts there were.
func (s *Step) Reset(ctx context.Context) (found int, err error) {
	return s.split().Reset(ctx, &s.Call)
}

// split splits the claims by who has their counts. For example, a call has a rule of instance scope and one of fleet scope. This process charges the
// first rule. If the store then refuses the second one, the permits of the first go back.
func (s *Step) split() parts.Split {
	return func(i int) (string, backend.Decider) {
		if s.rules[i].Instance {
			return "instance", s.limiter.instance() // first in order: a refusal of this process spares the store a charge that goes back
		}
		return "store", (*ofFleet)(s)
	}
}

// ruleOf returns the rule of a claim of the call, or of a part of it.
func (s *Step) ruleOf(claim *engine.Claim) *Rule {
	i := slices.IndexFunc(s.rules, func(r *Rule) bool { return &r.Numbers == claim.Rule })
	return s.rules[i]
}
