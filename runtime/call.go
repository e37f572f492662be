package ratelimit

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// call is a decision in the making. Calls are pooled, so that a decision in this process allocates nothing.
type call struct {
	status
	asked  []asked
	owners []int // for each rule of the method, or each request: the index in asked of the entry that covers it, or -1
	fleet  part
	local  part
	event  Event // what observers are told
}

// status is the state of a call that is reset for every use of a pooled call.
type status struct {
	limiter   *Limiter
	method    string      // "" for requests
	rules     []*prepared // of the method
	next      int         // the index of the rule or request to ask next
	err       error       // why the call cannot be decided
	never     bool        // a rule of limit 0 refuses it
	isBlocked bool        // one of its subjects is blocked
	patient   bool        // for Wait: any rule may delay the call by wait, whatever its own Wait is
	wait      time.Duration
	peek      bool
	upTo      bool // the requests have UpTo
	abandoned bool // the context ended while the call waited
	reports   bool // the caller wants the quotas
	needsRoom bool // a rule in shadow mode needs its number of free permits: it never admits the call, or the requests have UpTo
	answer    answer
}

// part is what one store decides of a call.
type part struct {
	engine.Call
	store   engine.Store
	verdict engine.Verdict
}

// asked is a rule that applies to the call.
type asked struct {
	rule      *prepared
	index     int // among the rules of the method, or among the requests
	subject   string
	cost      int64
	limit     int64
	wait      time.Duration // how long the rule may delay the call
	blockLeft time.Duration // how long the subject is still blocked
	part      *part         // has the rule's claim; nil if no store is asked, because the limit is 0 or the subject is blocked
	number    int           // the index of the claim in part
}

// claim returns the rule's claim on its store. It must not be called if part is nil.
func (a *asked) claim() *engine.Claim { return &a.part.Claims[a.number] }

var calls = sync.Pool{New: func() any { return new(call) }}

func (l *Limiter) newCall(method string) *call {
	l.settings.follow()
	c := calls.Get().(*call)
	c.status = status{limiter: l, method: method}
	c.asked, c.owners = c.asked[:0], c.owners[:0]
	c.fleet.reset(l.prefix, l.store)
	c.local.reset(l.prefix, l.local)
	return c
}

// free returns c to the pool.
func (c *call) free() { calls.Put(c) }

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
	if !c.peek {
		c.limiter.use(rule, charge)
	}
	rule, pinned := c.limiter.settings.applied(rule)
	a := asked{rule: rule, index: c.next, cost: charge.Cost, limit: rule.Limit, wait: c.waitOf(rule)}
	if charge.Limit.Given && !pinned {
		a.limit = charge.Limit.Permits
	}
	if err := c.check(&a, charge); err != nil {
		return err
	}
	a.subject = c.limiter.subject(&rule.Rule, charge.Key)
	p := c.partOf(rule)
	claim := p.put(&rule.claim)
	a.fill(claim)
	if rule.Distinct != "" {
		claim.Member = key.Member(c.limiter.hidden(&rule.Rule, charge.Member))
	}
	err := c.enter(&a, p, claim)
	if a.part == nil {
		p.drop()
	}
	return err
}

// enter adds a to c.asked, or joins it with an equal rule there. claim is the last claim of p. If a store has to decide it, enter sets
// a.part; otherwise the caller drops the claim.
func (c *call) enter(a *asked, p *part, claim *engine.Claim) error {
	var same *asked
	if i := c.same(a); i >= 0 {
		same, c.owners[c.next] = &c.asked[i], i
		if done, err := c.join(same, a, claim); done || err != nil {
			return err
		}
	}
	rule := a.rule
	a.blockLeft = c.limiter.settings.blockLeft(rule, a.subject)
	switch most, what := claim.Most(); {
	case a.blockLeft > 0:
		c.isBlocked = true
	case claim.Cost <= most || rule.Mode == ModeTrigger || c.upTo && most > 0:
		if rule.keepsTimes() && min(claim.Cost, most) > engine.MaxTimesCost {
			return rule.wrong("cost", "found %d; expected at most %d for a sliding-window; algorithm=sliding-counter takes more",
				claim.Cost, engine.MaxTimesCost)
		}
		a.part, a.number = p, len(p.Claims)-1
		c.needsRoom = c.needsRoom || c.upTo && rule.Mode == ModeShadow
	case rule.Mode == ModeEnforce && a.limit > 0:
		return &NeverAdmissibleError{
			Method: c.method, Rule: rule.shown, Key: key.Shown(a.subject), Cost: claim.Cost, Limit: most, what: what,
		}
	case a.limit > 0: // in shadow mode
		a.part, a.number = p, len(p.Claims)-1
		claim.Cost, claim.Wait, c.needsRoom = 1, engine.Never, true
	}
	if same != nil && a.part != nil {
		same.cost, same.claim().Cost, same.claim().Wait = a.cost, claim.Cost, claim.Wait
		a.part = nil
		return nil
	}
	c.never = c.never || a.never() && rule.Mode == ModeEnforce
	c.owners[c.next] = len(c.asked)
	c.asked = append(c.asked, *a)
	return nil
}

// same returns the index in c.asked of the rule that has the same count as a, or -1.
func (c *call) same(a *asked) int {
	for i := range c.asked {
		b := &c.asked[i]
		if b.subject == a.subject && b.rule.Name == a.rule.Name && b.rule.tag == a.rule.tag && b.rule.Scope == a.rule.Scope {
			return i
		}
	}
	return -1
}

// join adds the cost of same, an equal rule that was asked before, to a and its claim. It reports whether there is nothing more to ask.
func (c *call) join(same, a *asked, claim *engine.Claim) (done bool, err error) {
	if same.limit != a.limit || same.rule != a.rule && same.rule.Rule != a.rule.Rule {
		return false, a.rule.wrong("name", "found two different rules of one name, window and key in one call; give them different names")
	}
	if same.part != nil && same.claim().Member != claim.Member {
		return false, c.keyError(a.rule, a.rule.Distinct, "found two members for one count; expected one member for each call")
	}
	if claim.Member == "" {
		a.cost += min(same.cost, math.MaxInt64-a.cost)
		claim.Cost = a.permits()
	}
	if same.part == nil {
		same.cost = a.cost
	}
	return same.part == nil || claim.Member != "", nil
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
func (c *call) check(a *asked, charge *bridge.Charge) error {
	rule := a.rule
	if err := c.limiter.supports(rule, a.wait.Microseconds()); err != nil {
		return err
	}
	switch {
	case charge.Cost < 0:
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 0 or more", charge.Cost))
	case charge.Cost > 1 && rule.Distinct != "":
		return c.keyError(rule, "", fmt.Sprintf("the cost is %d; expected 1, as a member counts once", charge.Cost))
	case charge.Limit.Given && rule.wrongLimit(a.limit) != "":
		return c.keyError(rule, "", "the limit of this call: "+rule.wrongLimit(a.limit))
	case charge.Limit.Given && rule.refillsTooSlowly(a.limit):
		return c.keyError(rule, "", fmt.Sprintf(
			"the limit of this call: found %d, at which a burst of %d takes over a hundred years to fill", a.limit, rule.Burst))
	case len(charge.Key) > maxText:
		return c.keyError(rule, rule.Key, fmt.Sprintf("the key has %d bytes; expected at most %d", len(charge.Key), maxText))
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

// fill completes a copy of the rule's claim with the subject, cost and limit of this call. It leaves out the member.
func (a *asked) fill(claim *engine.Claim) {
	rule := a.rule
	claim.Subject, claim.Cost, claim.Limit = a.subject, a.permits(), a.limit
	if a.limit != rule.Limit {
		claim.Burst = rule.capacity(a.limit)
	}
}

// permits returns the number of permits to ask the store for. A rule in trigger mode counts beyond its limit, so its cost is bounded here.
func (a *asked) permits() int64 {
	if a.rule.Mode == ModeTrigger {
		return min(a.cost, 2*maxLimit)
	}
	return a.cost
}

func (c *call) partOf(rule *prepared) *part {
	if rule.Scope == ScopeInstance {
		return &c.local
	}
	return &c.fleet
}

// reset removes the claims and the verdict of p.
func (p *part) reset(prefix string, store engine.Store) {
	p.Call = engine.Call{Prefix: prefix, Claims: p.Claims[:0]}
	p.store, p.verdict = store, engine.Verdict{}
}

// put adds a copy of a claim to p, and returns the copy.
func (p *part) put(claim *engine.Claim) *engine.Claim {
	p.Claims = append(p.Claims, *claim)
	return &p.Claims[len(p.Claims)-1]
}

// drop removes the last claim.
func (p *part) drop() { p.Claims = p.Claims[:len(p.Claims)-1] }
