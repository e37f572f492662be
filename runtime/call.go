package ratelimit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// call is a decision in the making. Calls are pooled: a decision in this process allocates nothing.
type call struct {
	limiter *Limiter
	method  string      // "" for requests
	rules   []*prepared // of the method
	next    int         // of rules, to be asked
	err     error       // the first one of Ask
	patient bool        // for requests, which any rule may delay by wait, whatever its own is
	wait    time.Duration
	asked   []asked
	fleet   part
	local   part
	before  decide.Claim // what the rule that was asked last has joined; without a cost it has joined none
	charges []charged    // to be given to callers
}

// part is what one store decides of a call.
type part struct {
	decide.Call
	store   decide.Store
	verdict decide.Verdict
}

// asked is a rule that was asked, and the claim that answers for it. The claim of its block stands before that.
type asked struct {
	rule  *prepared
	part  *part // nil if the rule does not apply, or never admits the call
	claim int
	cost  int64
	never *Violation // the refusal of a rule that only watches, and would never admit the call
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (l *Limiter) newCall(ctx context.Context, method string) *call {
	l.follow(ctx)
	c := calls.Get().(*call)
	c.limiter, c.method, c.patient = l, method, false
	c.asked = c.asked[:0]
	c.fleet.reset(l, l.store)
	c.local.reset(l, l.local)
	return c
}

func (p *part) reset(l *Limiter, store decide.Store) {
	p.Call = decide.Call{Prefix: l.prefix, Claims: p.Claims[:0]}
	p.store = store
}

// free gives c back to the pool.
func (c *call) free() { calls.Put(c) }

// add puts a rule to the question.
func (c *call) add(rule *prepared, charge *bridge.Charge) error {
	rule, pinned := c.limiter.overridden(rule)
	if charge.Cost == 0 {
		c.asked = append(c.asked, asked{rule: rule})
		return nil
	}
	limit := rule.Limit
	if charge.Limit.Given && !pinned {
		limit = charge.Limit.Permits
	}
	if err := c.check(rule, charge, limit); err != nil {
		return err
	}
	claim := c.claim(rule, charge, limit)
	capacity := capacity(claim)
	switch {
	case claim.Member != "" && c.counts(claim):
		return c.keyError(rule, rule.Distinct, "found two members for one budget; expected one for each call")
	case claim.Mode == decide.Trigger && limit > 0 || claim.Cost <= capacity:
		return nil
	case rule.Mode == ModeEnforce:
		return &NeverAdmissibleError{
			Method: c.method, Rule: rule.Name, Key: key.Shown(claim.Subject), Cost: claim.Cost, Limit: capacity,
			what: bound(rule, claim),
		}
	}
	c.withdraw(claim)
	if rule.Mode == ModeShadow {
		c.asked[len(c.asked)-1].never = &Violation{
			Rule: rule.Name, Window: rule.Window(), Key: key.Shown(key.Subject(charge.Key)), Limit: limit, message: rule.Message,
		}
	}
	return nil
}

// check returns what is wrong with what the call brings along for a rule.
func (c *call) check(rule *prepared, charge *bridge.Charge, limit int64) error {
	if err := c.limiter.supports(rule, c.waitOf(rule).Microseconds()); err != nil {
		return err
	}
	switch {
	case charge.Cost < 0:
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 0 or more", charge.Cost))
	case charge.Cost > 1 && rule.Distinct != "":
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 1, as a member counts once", charge.Cost))
	case charge.Limit.Given && rule.wrongLimit(limit) != "":
		return c.keyError(rule, "", "the limit of this call: "+rule.wrongLimit(limit))
	case charge.Limit.Given && rule.refillsTooSlowly(limit):
		return c.keyError(rule, "", fmt.Sprintf(
			"the limit of this call: found %d, at which a burst of %d takes over a hundred years to fill", limit, rule.Burst))
	case charge.Key == "" && rule.Key != "":
		return c.keyError(rule, rule.Key, "the key is empty")
	case charge.Member == "" && rule.Distinct != "":
		return c.keyError(rule, rule.Distinct, "the member is empty")
	}
	return nil
}

// withdraw undoes the last call of claim: a rule that only watches, and would never admit the call, stays out of it.
func (c *call) withdraw(claim *decide.Claim) {
	last := &c.asked[len(c.asked)-1]
	if *claim = c.before; claim.Cost == 0 {
		last.part.Claims = last.part.Claims[:last.claim]
	}
	*last = asked{rule: last.rule}
}

// counts reports whether a claim for another member has the state of this one.
func (c *call) counts(claim *decide.Claim) bool {
	p := c.asked[len(c.asked)-1].part
	return slices.ContainsFunc(p.Claims, func(other decide.Claim) bool {
		return other.Rule.ID == claim.Rule.ID && other.Subject == claim.Subject && other.Member != claim.Member
	})
}

func (c *call) keyError(rule *prepared, expr, reason string) error {
	return &KeyError{Method: c.method, Rule: rule.Name, Expr: expr, Reason: reason}
}

// claim returns the claim that asks rule.
func (c *call) claim(rule *prepared, charge *bridge.Charge, limit int64) *decide.Claim {
	p := &c.fleet
	if rule.Scope == ScopeInstance {
		p = &c.local
	}
	who, what, burst, cost := key.Subject(charge.Key), "", rule.burst, charge.Cost
	if rule.Mode == ModeTrigger {
		cost = min(cost, 2*maxLimit)
	}
	if rule.Distinct != "" {
		what = key.Member(charge.Member)
	}
	if rule.Algorithm == TokenBucket && rule.Burst == 0 {
		burst = limit
	}
	for i := range p.Claims {
		if claim := &p.Claims[i]; claim.Rule.ID == rule.numbers.ID && claim.Subject == who && claim.Member == what {
			return c.join(p, i, rule, cost, limit, burst)
		}
	}
	if rule.block != nil {
		*p.grow() = decide.Claim{Rule: rule.block, Subject: who, Cost: 1, Limit: 1}
	}
	c.asked = append(c.asked, asked{rule: rule, part: p, claim: len(p.Claims), cost: cost})
	c.before.Cost = 0
	claim := p.grow()
	claim.Rule, claim.Subject, claim.Member, claim.Cost = rule.numbers, who, what, cost // the store fills in the rest
	claim.Limit, claim.Burst, claim.Wait, claim.Mode = limit, burst, c.delay(rule, limit), decide.Mode(rule.Mode)
	return claim
}

// join makes the i-th claim ask rule as well, which has the same state. Rules that share their state are one claim, of the sum
// of the costs and the strictest terms: one by one, each might fit where both do not. If some of them do not enforce, the
// terms are those of the ones that do.
func (c *call) join(p *part, i int, rule *prepared, cost, limit, burst int64) *decide.Claim {
	if rule.block != nil {
		i = c.addBlock(p, i, rule)
	}
	claim := &p.Claims[i]
	c.before = *claim
	claim.Cost += min(cost, math.MaxInt64-claim.Cost)
	switch mode := decide.Mode(rule.Mode); {
	case mode == claim.Mode:
		claim.Limit, claim.Burst, claim.Wait = min(claim.Limit, limit), min(claim.Burst, burst), min(claim.Wait, c.delay(rule, limit))
	case mode == decide.Enforce:
		claim.Limit, claim.Burst, claim.Wait, claim.Mode = limit, burst, c.delay(rule, limit), mode
	}
	c.asked = append(c.asked, asked{rule: rule, part: p, claim: i, cost: cost})
	return claim
}

// addBlock puts the block of a rule before the i-th claim, if that has none or a shorter one, and returns the claim's new number.
func (c *call) addBlock(p *part, i int, rule *prepared) int {
	if i > 0 && p.Claims[i-1].Rule.ID == rule.block.ID {
		if block := &p.Claims[i-1]; block.Rule.Per < rule.block.Per {
			block.Rule = rule.block
		}
		return i
	}
	p.Claims = slices.Insert(p.Claims, i, decide.Claim{Rule: rule.block, Subject: p.Claims[i].Subject, Cost: 1, Limit: 1})
	for j := range c.asked {
		if a := &c.asked[j]; a.part == p && a.claim >= i {
			a.claim++
		}
	}
	return i + 1
}

// delay returns for how many microseconds a rule may delay the call.
func (c *call) delay(rule *prepared, limit int64) int64 {
	wait := c.waitOf(rule)
	if wait == 0 || rule.Mode != ModeEnforce {
		return 0
	}
	return rule.delay(wait, limit)
}

func (c *call) waitOf(rule *prepared) time.Duration {
	if c.patient {
		return c.wait
	}
	return rule.Wait
}

// grow adds a claim.
func (p *part) grow() *decide.Claim {
	n := len(p.Claims)
	p.Claims = slices.Grow(p.Claims, 1)[:n+1]
	return &p.Claims[n]
}

// capacity is the largest cost that can ever be admitted.
func capacity(c *decide.Claim) int64 {
	switch {
	case c.Limit == 0:
		return 0
	case c.Rule.Kind == decide.Bucket:
		return c.Burst
	case c.Rule.Kind == decide.Prepaid || c.Rule.Kind == decide.Warm: // what a debt is that times still have room for
		return int64(min(maxBucketLimit, float64(maxRefill.Microseconds())/float64(c.Rule.Per)*float64(c.Limit)))
	default:
		return c.Limit
	}
}

// bound says what capacity is.
func bound(rule *prepared, c *decide.Claim) string {
	switch {
	case capacity(c) == c.Limit:
		return "limit"
	case rule.Prepay || rule.Warmup > 0:
		return "largest debt"
	default:
		return "burst"
	}
}

// violation returns the refusal of a rule that was asked, or false if it does not refuse.
func (a asked) violation() (Violation, bool) {
	switch {
	case a.never != nil:
		return *a.never, true
	case a.part == nil:
		return Violation{}, false
	}
	claim, now := &a.part.Claims[a.claim], a.part.verdict.Now
	earliest, refused, room := claim.Earliest, claim.Refused(now), claim.Room
	if a.rule.block != nil {
		room = 0
		switch block := &a.part.Claims[a.claim-1]; {
		case block.Refused(now) && refused:
			earliest = max(earliest, block.Earliest)
		case block.Refused(now):
			earliest, refused = block.Earliest, true // then the rule lets the call wait
		case refused:
			earliest = max(earliest, now+block.Rule.Per)
		}
	}
	return Violation{
		Rule: a.rule.Name, Window: a.rule.Window(), Key: key.Shown(claim.Subject), Limit: claim.Limit,
		Remaining: room, RetryAfter: time.Duration(earliest-now) * time.Microsecond, message: a.rule.Message,
	}, refused
}

// violations returns the refusals of the rules of a mode, and the longest delay.
func (c *call) violations(mode Mode) (longest time.Duration, list []Violation) {
	for i, a := range c.asked {
		if a.rule.Mode != mode {
			continue
		}
		if v, refused := a.violation(); refused {
			v.index = i
			longest = max(longest, v.RetryAfter)
			list = append(list, v)
		}
	}
	return longest, list
}

// refusal returns the error of the rules of a mode that refuse, or nil.
func (c *call) refusal(mode Mode) *TooManyRequestsError {
	e := &TooManyRequestsError{Method: c.method}
	if e.RetryAfter, e.Violations = c.violations(mode); e.Violations == nil {
		return nil
	}
	if e.Message = e.longest().message; e.Message == "" {
		e.Message = defaultMessage
	}
	return e
}

// report tells the limiter's functions what shadows and, if the call is admitted, triggers have to say.
func (c *call) report(ctx context.Context, admitted bool) {
	if c.limiter.shadow != nil {
		if refusal := c.refusal(ModeShadow); refusal != nil {
			c.limiter.shadow(ctx, refusal)
		}
	}
	if c.limiter.trigger == nil || !admitted {
		return
	}
	for _, a := range c.asked {
		if a.part == nil || a.rule.Mode != ModeTrigger {
			continue
		}
		if claim := &a.part.Claims[a.claim]; claim.Fired > 0 {
			c.limiter.trigger(ctx, Trigger{
				Method: c.method, Rule: a.rule.Name, Key: key.Shown(claim.Subject), Limit: claim.Limit, Used: claim.Fired,
			})
		}
	}
}
