package ratelimit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// ask adds the claim of the next rule to the call. After the first error it does nothing.
func (c *call) ask(rule *prepared, charge *bridge.Charge) {
	if c.err == nil {
		c.owners = append(c.owners, -1)
		c.err = c.add(rule, charge)
	}
	c.next++
}

func (c *call) add(rule *prepared, charge *bridge.Charge) error {
	if charge.Cost == 0 {
		return nil
	}
	if !c.asked.Peek {
		c.limiter.use(rule)
	}
	if len(charge.Key) > maxText { // before the key is hashed and escaped
		return c.keyError(rule, rule.Key, fmt.Sprintf("the key has %d bytes; expected at most %d", len(charge.Key), maxText))
	}
	subject := c.limiter.subject(&rule.Rule, charge.Key)
	rule, blockLeft, pauseLeft := c.limiter.inForce(rule, subject)
	n := len(c.rulings)
	c.rulings = slices.Grow(c.rulings, 1)[:n+1]
	r := &c.rulings[n]
	*r = ruling{}
	r.rule, r.index, r.cost, r.limit, r.wait, r.asked = rule, c.next, charge.Cost, rule.limitFor(charge.Limit), c.waitOf(rule), notAsked
	r.subject, r.blockLeft, r.pauseLeft = subject, blockLeft, pauseLeft
	c.waits, c.paused = c.waits || r.wait > 0, c.paused || pauseLeft > 0
	if err := c.check(r, charge); err != nil {
		return err
	}
	last := len(c.asked.Claims)
	c.asked.Claims = slices.Grow(c.asked.Claims, 1)[:last+1]
	claim := &c.asked.Claims[last]
	claim.Rule, claim.Subject, claim.Member, claim.Mode, claim.Delta = rule.numbers, subject, "", engine.Mode(rule.Mode), 0
	r.fill(claim, 0)
	claim.ID, claim.Kept = 0, c.rules != nil // the claim may have been another one before
	if rule.row().Releases {
		c.releases, claim.ID = true, rand.Uint64()
	}
	if rule.Distinct != "" {
		claim.Member = key.Member(c.limiter.hidden(&rule.Rule, charge.Member))
	}
	joined, err := c.enter(r, claim)
	if joined || !r.isAsked() {
		c.asked.Claims = c.asked.Claims[:last]
	}
	if joined {
		c.rulings = c.rulings[:n]
	}
	return err
}

// enter joins r, the last ruling, with that of an equal rule, or decides whether a store has to be asked. If so it sets r.asked. claim is the
// last claim. The caller drops a ruling that was joined, and a claim that is not asked.
func (c *call) enter(r *ruling, claim *engine.Claim) (joined bool, err error) {
	owner := c.same(r)
	c.owners[c.next] = owner
	same := &c.rulings[owner]
	if same != r {
		if done, err := c.join(same, r, claim); done || err != nil {
			return true, err
		}
	}
	rule := r.rule
	switch most, what := claim.Most(); {
	case r.blockLeft > 0:
		c.isBlocked = true
	case claim.Cost <= most || rule.Mode == ModeTrigger || c.asked.UpTo && most > 0:
		r.asked = len(c.asked.Claims) - 1
		c.asked.Report = c.asked.Report || c.asked.UpTo && rule.Mode == ModeShadow
	case rule.Mode == ModeEnforce && r.limit > 0:
		return false, &NeverAdmissibleError{
			Method: c.method, Rule: rule.shown, Key: key.Shown(r.subject), Cost: claim.Cost, Limit: most, what: what,
		}
	case r.limit > 0: // in shadow mode
		r.asked, r.neverFits = len(c.asked.Claims)-1, true
		claim.Cost, claim.Wait, c.asked.Report = 1, engine.Never, true
	}
	c.never = c.never || r.never() && rule.Mode == ModeEnforce
	if same == r || !r.isAsked() {
		return false, nil
	}
	same.cost, same.neverFits = r.cost, r.neverFits
	whole := c.claim(same)
	whole.Cost, whole.Wait = claim.Cost, claim.Wait
	return true, nil
}

// same returns the index of the first ruling of a rule that has the same count as r, the last one.
func (c *call) same(r *ruling) int {
	last := len(c.rulings) - 1
	for i := range c.rulings[:last] {
		other := &c.rulings[i]
		if other.subject == r.subject && other.rule.Name == r.rule.Name && other.rule.tag == r.rule.tag && other.rule.Scope == r.rule.Scope {
			return i
		}
	}
	return last
}

// join adds the cost of same, an equal rule that was asked before, to r and its claim. It reports whether there is nothing more to ask.
func (c *call) join(same, r *ruling, claim *engine.Claim) (done bool, err error) {
	if same.limit != r.limit || same.rule != r.rule && same.rule.Rule != r.rule.Rule {
		return false, r.rule.wrong("name", "found two different rules of one name, window and key in one call; give them different names")
	}
	if same.isAsked() && c.claim(same).Member != claim.Member {
		return false, c.keyError(r.rule, r.rule.Distinct, "found two members for one count; expected one member for each call")
	}
	if claim.Member == "" {
		r.cost += min(same.cost, math.MaxInt64-r.cost)
		claim.Cost = r.permits()
	}
	if !same.isAsked() {
		same.cost = r.cost
	}
	return !same.isAsked() || claim.Member != "", nil
}

func (c *call) waitOf(rule *prepared) time.Duration {
	switch {
	case rule.Mode != ModeEnforce:
		return 0
	case c.patient:
		return c.wait
	default:
		return rule.Wait
	}
}

// maxText bounds a caller's key or member, in bytes.
const maxText = 64 << 10

// check returns an error if the rule cannot decide this charge.
func (c *call) check(r *ruling, charge *bridge.Charge) error {
	rule := r.rule
	if err := c.limiter.supports(rule, r.wait.Microseconds()); err != nil {
		return err
	}
	switch {
	case charge.Cost < 0:
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 0 or more", charge.Cost))
	case charge.Cost > 1 && rule.Distinct != "":
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 1, as a member counts once", charge.Cost))
	case rule.Computed && rule.wrongLimit(r.limit) != "":
		return c.keyError(rule, "", "the limit of this call: "+rule.wrongLimit(r.limit))
	case rule.Computed && rule.refillsTooSlowly(r.limit):
		return c.keyError(rule, "", fmt.Sprintf(
			"the limit of this call: found %d, at which a burst of %d takes over a hundred years to fill", r.limit, rule.Burst))
	case len(charge.Member) > maxText:
		return c.keyError(rule, rule.Distinct, fmt.Sprintf("the member has %d bytes; expected at most %d", len(charge.Member), maxText))
	case charge.Key == "" && rule.Key != "":
		return c.keyError(rule, rule.Key, "the key is empty")
	case charge.Member == "" && rule.Distinct != "":
		return c.keyError(rule, rule.Distinct, "the member is empty")
	case c.patient && c.wait > 0 && rule.Mode == ModeEnforce:
		return rule.checkCanWait()
	}
	return nil
}

func (c *call) keyError(rule *prepared, expr, reason string) error {
	return &KeyError{Method: c.method, Rule: rule.shown, Expr: expr, Reason: reason}
}
