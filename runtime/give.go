package ratelimit

import (
	"context"
	"slices"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Give gives up to n permits back to each request, whichever calls took them: the newest ones, but not the places of calls that wait. Windows
// of FixedWindow and Calendar get permits of the present window. A rule never has more than its limit left. A bucket for which calls wait gets
// little or nothing back. A negative n takes permits instead, also beyond the limit, as [Decision.Settle] does. Give(0) does nothing. Costs of
// the requests do not matter. Observers see an [EventGiven].
//
// The error is a *RuleError if a rule has Distinct or counts calls that run. The other errors are those of [Limiter.Reset].
func (l *Limiter) Give(ctx context.Context, n int64, requests ...Request) error {
	if n == 0 {
		return nil
	}
	if len(requests) == 0 {
		return noRequests()
	}
	n = min(max(n, -maxLimit), maxLimit)
	call := &engine.Call{Prefix: l.prefix, Change: engine.Gives}
	var rules []Outcome
	for i := range requests {
		rule, claim, err := l.claimOf(&requests[i])
		switch {
		case err != nil:
			return err
		case rule.Distinct != "":
			return rule.wrong("give", "does not go with distinct=: each member counts once")
		case !rule.takes("give"):
			return rule.checkTakes("give", true)
		case rule.Computed && rule.row().IsBucket:
			return rule.wrong("give", "each call brings the limit of this bucket, so its rate is unknown; override the limit first")
		}
		claim.Delta = -n
		same := slices.IndexFunc(call.Claims, func(c engine.Claim) bool {
			return c.Subject == claim.Subject && c.Rule.Name == claim.Rule.Name && c.Rule.Tag == claim.Rule.Tag
		})
		if same >= 0 {
			call.Claims[same].Delta += claim.Delta
			continue
		}
		call.Claims = append(call.Claims, claim)
		rules = append(rules, rule.outcome(claim.Subject, rule.Limit))
	}
	for i := range call.Claims {
		c, o := &call.Claims[i], &rules[i]
		most := c.MostSettled()
		c.Delta = min(max(c.Delta, -most), most)
		o.CostBefore, o.Cost = max(0, -c.Delta), max(0, c.Delta)
	}
	err := l.changeStates(ctx, "give", call)
	l.tell(ctx, EventGiven, "", err, rules...)
	return err
}
