package decide

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// addRule adds a rule to what the call asks. A rule with the same count as an earlier one adds its cost to that one.
func (c *Call) addRule(p *planned, use *Use) error {
	if use.Skip {
		return nil
	}
	n := len(c.Asked)
	a := &c.Asked[:n+1][n]
	a.Claim = &c.Claims[:len(c.Claims)+1][len(c.Claims)]
	switch err := c.claim(a, p, use); {
	case use.Cost == 0:
		c.addAtNoCost(a, err)
		return nil
	case err != nil:
		return err
	case a.Limit == NoLimit:
		c.addUnlimited(a)
		return nil
	}
	if c.method == nil || p.mayShare {
		if same := c.earlier(a); same >= 0 {
			c.joined = append(c.joined, joined{c.next, same, use.Cost})
			return c.addCost(&c.Asked[same], a)
		}
	}
	c.Asked = c.Asked[:n+1]
	c.addClaim(a)
	return nil
}

// MaxText bounds a caller's key or member, in bytes.
const MaxText = 64 << 10

// claim makes the claim of a rule. The error says why the rule cannot count what the call uses.
func (c *Call) claim(a *Asked, p *planned, use *Use) error {
	if p.err != nil {
		return p.err
	}
	l := c.limiter
	if len(use.Key) > MaxText { // before the key is hashed and escaped
		return c.keyError(p.declared, p.declared.Key, fmt.Sprintf("the key has %d bytes; expected at most %d", len(use.Key), MaxText))
	}
	subject := ""
	switch {
	case c.grows != nil:
		subject = c.grows.claim.Subject
	case p.stations&hashed == 0:
		subject = key.Subject(use.Key)
	default:
		subject = l.Subject(p.declared.PlainKeys, use.Key)
	}
	a.BlockLeft, a.pauseLeft, a.wait = 0, 0, 0
	if p.stations&ofKey != 0 {
		p, a.BlockLeft, a.pauseLeft = p.forKey(l, use.Key, subject)
	}
	rule, claim := p.rule.at(use.Limit), a.Claim
	a.Rule, a.Index, a.Limit, a.given = rule, c.next, rule.LimitFor(use.Limit), use.Limit
	if c.LacksLimit(a) {
		a.Limit = rule.MostLimit
	}
	a.Cost, a.own, a.text = use.Cost, use.Cost, use.Key
	claim.Ask, claim.Delta = rule.Ask, 0
	claim.Clear()
	claim.Subject, claim.Renewed = subject, c.givesBack
	c.visits |= p.stations
	if p.stations&unenforced == 0 && !c.Grows {
		if a.wait = c.wait; c.method != nil {
			a.wait = rule.Wait
		}
	}
	if err := c.check(a, use); err != nil {
		return err
	}
	a.setAsk(0)
	if p.stations&anchored != 0 {
		if err := c.setAnchor(a, use.Anchor); err != nil {
			return err
		}
	}
	if p.stations&members != 0 {
		claim.Member = key.Member(l.hidden(rule.PlainKeys, use.Member))
	}
	return nil
}

// setAnchor sets when the windows of the claim begin. A peek needs no anchor, and neither does a call that the rule does not limit. A call that asks for
// more permits keeps its anchor.
func (c *Call) setAnchor(a *Asked, at time.Time) error {
	if c.grows != nil {
		a.Claim.Anchor = c.grows.claim.Anchor
		return nil
	}
	anchor, err := c.limiter.Anchor(c.Method(), a.Rule, at)
	if err == nil && anchor == 0 && !c.Peek && a.Limit != NoLimit {
		err = c.limiter.public.WrongAnchor(c.Method(), a.Rule, "found the zero time")
	}
	a.Claim.Anchor = anchor
	return err
}

// Anchor returns the anchor at a time for a rule with windows of anchors.
func (l *Limiter) Anchor(method string, rule *Rule, at time.Time) (engine.Anchor, error) {
	anchor, ok := engine.AnchorAt(at)
	if !ok {
		return 0, l.public.WrongAnchor(method, rule, fmt.Sprintf("found a time in the year %d; expected 1 to 9999", at.UTC().Year()))
	}
	return anchor, nil
}

// ShareAnchor gives a claim the anchor of another one on its count. It returns an error if both have one, and these differ.
func (l *Limiter) ShareAnchor(method string, rule *Rule, claim *engine.Claim, anchor engine.Anchor) error {
	claim.Anchor = cmp.Or(claim.Anchor, anchor)
	if anchor != 0 && claim.Anchor != anchor {
		return l.public.KeyError(method, rule, "", "found two anchors for one count; expected one anchor for each call")
	}
	return nil
}

// check returns an error if what the call uses does not fit the rule.
func (c *Call) check(a *Asked, use *Use) error {
	rule := a.Rule
	switch {
	case use.Cost < 0:
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 0 or more", use.Cost))
	case use.Cost > 1 && rule.Distinct != "":
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 1, as a member counts once", use.Cost))
	case rule.Computed && a.Limit != NoLimit:
		if wrong := rule.Declared.WrongLimit(a.Limit); wrong != "" {
			return c.limiter.public.WrongLimit(c.Method(), rule, "the limit of this call: "+wrong)
		}
	}
	switch {
	case len(use.Member) > MaxText:
		return c.keyError(rule, rule.Distinct, fmt.Sprintf("the member has %d bytes; expected at most %d", len(use.Member), MaxText))
	case use.Key == "" && rule.Key != "":
		return c.keyError(rule, rule.Key, "the key is empty")
	case use.Member == "" && rule.Distinct != "":
		return c.keyError(rule, rule.Distinct, "the member is empty")
	case a.wait > 0:
		err := rule.Declared.CannotWait()
		if c.Reserves {
			err = c.cannotReserve(rule)
		}
		if err != nil {
			return err
		}
		return c.limiter.Supports(rule, a.wait.Microseconds())
	}
	return nil
}

func (c *Call) keyError(rule *Rule, expr, reason string) error {
	return c.limiter.public.KeyError(c.Method(), rule, expr, reason)
}

// addAtNoCost adds a rule at a cost of 0: it refuses nothing, and no store is asked. Its charge has no permits until it is settled. If the rule cannot
// count the charge, which err says, it does not apply.
func (c *Call) addAtNoCost(a *Asked, err error) {
	if err != nil || a.Limit == NoLimit {
		return
	}
	claim := a.Rule.ClaimOn(a.Claim.Subject, a.Limit)
	claim.Burst, claim.Anchor = a.Rule.Capacity(claim.Limit), a.Claim.Anchor
	claim.KeepTexts()
	c.noCost = append(c.noCost, charge{part: part{rule: a.Rule, claim: claim}, index: a.Index, given: a.given, key: c.limiter.keyOf(a), noCost: true})
}

// setAsk sets what the claim asks when the call has waited for that time. A trigger counts beyond its limit, up to a cost that always reaches it. In shadow
// mode a cost that never fits stays as checkCosts has set it.
func (a *Asked) setAsk(waited time.Duration) {
	claim := a.Claim
	claim.Limit, claim.Burst = a.Limit, a.Rule.Capacity(a.Limit)
	if claim.Wait == engine.NeverFits {
		return
	}
	if claim.Cost = a.Cost; claim.Mode == engine.Trigger {
		claim.Cost = min(a.Cost, 2*engine.MaxLimit)
	}
	if claim.Wait = 0; a.wait > waited {
		claim.Wait = a.Rule.delay(a.wait-waited, a.Limit)
	}
}

// earlier returns the index of an earlier claim on the count of a, or -1.
func (c *Call) earlier(a *Asked) int {
	return slices.IndexFunc(c.Asked, func(other Asked) bool {
		return other.Claim.Subject == a.Claim.Subject && other.Rule.countsWith(a.Rule)
	})
}

// addCost adds the cost of a to same, an earlier claim on the same count. If the rules count members, the cost stays: a call has one
// member, which costs one permit, however many rules count it.
func (c *Call) addCost(same, a *Asked) error {
	wrong := a.Rule.Declared.Wrong
	differ := c.limiter.ShareAnchor(c.Method(), a.Rule, same.Claim, a.Claim.Anchor)
	switch {
	case same.Limit != a.Limit || !same.Rule.Declared.CountsLike(a.Rule.Declared):
		return wrong("name", "found two different rules of one name, window and key in one call; give them different names")
	case same.Claim.Member != a.Claim.Member:
		return c.keyError(a.Rule, a.Rule.Distinct, "found two members for one count; expected one member for each call")
	case differ != nil:
		return differ
	case c.UpTo: // its requests take the same number from each rule
		return wrong("requests", "found UpTo on two requests with one count; expected one request for each count")
	case a.Claim.Member == "":
		same.Cost += min(a.Cost, math.MaxInt64-same.Cost)
		same.setAsk(0)
		c.visits |= costly
	}
	return nil
}

// addClaim adds a claim that the call asks. If the subject is blocked, or the limit is 0, addClaim answers the claim: no store is asked about it. In
// enforce mode such a rule refuses the call. In shadow mode the claim stays out of Claims, and stores decide the others.
func (c *Call) addClaim(a *Asked) {
	claim := a.Claim
	if claim.Limit == 0 && claim.Mode == engine.Shadow {
		a.Claim = new(engine.Claim)
		*a.Claim, claim = *claim, a.Claim
	} else {
		c.Claims = c.Claims[:len(c.Claims)+1]
		c.rules = append(c.rules, a.Rule)
	}
	if a.Cost > 1 {
		c.visits |= costly
	}
	c.waits, c.paused = c.waits || a.wait > 0, c.paused || a.pauseLeft > 0
	if a.BlockLeft > 0 || claim.Limit == 0 {
		claim.Blocked = a.BlockLeft > 0
		claim.Refused = claim.Blocked || a.Never()
		if claim.Refused && claim.Mode == engine.Enforce {
			c.isBlocked, c.never = c.isBlocked || claim.Blocked, c.never || !claim.Blocked
		}
	}
	if a.Rule.Row.Releases {
		claim.ID = c.limiter.fleet.CallID()
		claim.KeepTexts() // the store renews the permits
	}
	c.Report = c.Report || c.UpTo && claim.Mode == engine.Shadow
}
