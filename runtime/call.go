package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// call is one decision: what it asks, the verdict, and what observers are told. Fields with capitals are those of engine.Call. Calls are
// pooled, so that a decision in this process allocates nothing.
type call struct {
	perUse
	engine.Call          // what it asks the stores: a claim for each ruling, except rules in shadow mode with a limit of 0
	rulings     []ruling // one for each count of the rules that apply
	shares      []share  // one for each rule of the method, or each request
	noCost      []charge // one for each rule of the method that applies at a cost of 0
	event       Event    // what observers are told
}

// share is what one rule of a method, or one request, has in a ruling. Rules with the same count have one ruling: their costs are added.
type share struct {
	ruling int // its index; skipped if the rule does not apply; at a cost of 0, place says where its charge is
	cost   int64
}

const skipped = -1

// perUse has the fields of a call that are reset for every use of a pooled call.
type perUse struct {
	limiter *Limiter
	method  string          // "" for requests
	rules   []*preparedRule // of the method
	next    int             // the index of the next rule or request
	err     error           // why the call cannot be decided
	wishes  wishes          // of the caller

	ofRequests  bool          // the caller passed requests; then wait holds instead of the Wait of each rule
	wait        time.Duration // how long a call of requests may wait; 0 for Allow and Peek
	waits       bool          // a rule may delay the call
	paused      bool          // a setting pauses one of its subjects
	wantsQuotas bool          // the caller wants to know what the rules have left
	givesBack   bool          // a wrapper keeps the charge, to give it back
	releases    bool          // a rule's permits are released when calls end
	mustRelease bool          // the call has such permits, and perform goes on; if an observer or a trigger panics, free releases the permits
	never       bool          // a rule of limit 0 refuses the call
	isBlocked   bool          // one of its subjects is blocked

	came       int64         // its number among the calls of this process that may wait
	waiter     *fleet.Waiter // the call in its line, or nil
	awaited    *ruling       // the rule whose permits others must release first, or nil
	waitsSince time.Time     // when it began to wait
	asksAt     time.Time     // when it asks again; only the first call that holds in a line does

	verdict   engine.Verdict
	waited    time.Duration // how long the call has waited; an admitted call counts the time until its place at once
	abandoned bool          // the context ended while the call waited
}

var calls = sync.Pool{New: func() any { return new(call) }}

// newCall returns a call of a method, or of n requests. It has room for n rules. givesBack says that a wrapper keeps the charge, to give it back.
func (l *Limiter) newCall(method string, rules []*preparedRule, n int, givesBack bool) *call {
	c := calls.Get().(*call)
	c.perUse = perUse{}
	c.limiter, c.method, c.rules, c.givesBack = l, method, rules, givesBack
	if cap(c.rulings) < n {
		c.rulings, c.Claims, c.shares = make([]ruling, n), make([]engine.Claim, n), make([]share, n)
	}
	c.Call = engine.Call{Prefix: l.prefix, Claims: c.Claims[:0]}
	c.rulings, c.shares, c.noCost = c.rulings[:0], c.shares[:0], c.noCost[:0]
	return c
}

// free returns c to the pool. If an observer or a trigger has panicked, the program's call does not run, and its permits are released.
func (c *call) free() {
	if c.mustRelease {
		c.mustRelease = false
		c.charges().Release(context.Background())
	}
	calls.Put(c)
}

// add adds the next rule to what the call asks. A rule with the same count as an earlier one adds its cost to that one.
func (c *call) add(rule *preparedRule, charge *bridge.Charge) error {
	if charge.Skip {
		c.shares = append(c.shares, share{ruling: skipped})
		return nil
	}
	n := len(c.rulings)
	r := &c.rulings[:n+1][n]
	switch err := c.rule(r, rule, charge); {
	case charge.Cost == 0:
		c.addAtNoCost(r, err)
		return nil
	case err != nil:
		return err
	}
	c.rulings = c.rulings[:n+1]
	if i := c.sameCount(r); i < n {
		c.rulings, c.shares = c.rulings[:n], append(c.shares, share{i, charge.Cost})
		return c.addCost(&c.rulings[i], r)
	}
	c.shares = append(c.shares, share{n, charge.Cost})
	c.makeClaim(r)
	return nil
}

// rule sets r to the ruling of a rule, without its claim. The error says why the rule cannot count the charge.
func (c *call) rule(r *ruling, rule *preparedRule, charge *bridge.Charge) error {
	if !c.limiter.uses(rule) {
		if err := c.limiter.use(rule, c.Peek); err != nil {
			return err
		}
	}
	if len(charge.Key) > maxText { // before the key is hashed and escaped
		return c.keyError(rule, rule.Key, fmt.Sprintf("the key has %d bytes; expected at most %d", len(charge.Key), maxText))
	}
	subject := c.limiter.subject(&rule.Rule, charge.Key)
	rule, blockLeft, pauseLeft := c.limiter.inForce(rule, subject)
	*r = ruling{}
	r.rule, r.index, r.cost, r.limit = rule, c.next, charge.Cost, rule.limitFor(charge.Limit)
	r.subject, r.blockLeft, r.pauseLeft = subject, blockLeft, pauseLeft
	switch {
	case rule.Mode != ModeEnforce:
	case c.ofRequests:
		r.wait = c.wait
	default:
		r.wait = rule.Wait
	}
	if err := c.check(r, charge); err != nil {
		return err
	}
	if rule.Distinct != "" {
		r.member = key.Member(c.limiter.hidden(&rule.Rule, charge.Member))
	}
	return nil
}

// addAtNoCost adds a rule at a cost of 0: it refuses nothing, and no store is asked. Its charge has no permits until it is settled. If the rule cannot
// count the charge, which err says, it does not apply.
func (c *call) addAtNoCost(r *ruling, err error) {
	at := share{ruling: skipped}
	if err == nil {
		at.ruling -= 1 + len(c.noCost)
		claim := r.rule.claim
		claim.Subject, claim.Limit = r.subject, max(1, r.limit)
		claim.Burst = r.rule.capacity(claim.Limit)
		claim.KeepTexts()
		c.noCost = append(c.noCost, charge{rule: r.rule, claim: claim, noCost: true})
	}
	c.shares = append(c.shares, at)
}

// maxText bounds a caller's key or member, in bytes.
const maxText = 64 << 10

// check returns an error if the charge does not fit the rule.
func (c *call) check(r *ruling, charge *bridge.Charge) error {
	rule := r.rule
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
	case r.wait > 0:
		return cmp.Or(rule.checkWaits(true), c.limiter.supports(rule, r.wait.Microseconds()))
	}
	return nil
}

func (c *call) keyError(rule *preparedRule, expr, reason string) error {
	return &KeyError{Method: c.method, Rule: rule.label, Expr: expr, Reason: reason}
}

// sameCount returns the index of the first ruling that has the count and scope of r, the last ruling.
func (c *call) sameCount(r *ruling) int {
	last := len(c.rulings) - 1
	for i := range c.rulings[:last] {
		if same := &c.rulings[i]; same.count() == r.count() && same.rule.Scope == r.rule.Scope {
			return i
		}
	}
	return last
}

// addCost adds the cost of r to same, an earlier ruling of the same count. If the rules count members, the cost stays: a call has one
// member, which costs one permit, however many rules count it.
func (c *call) addCost(same, r *ruling) error {
	switch {
	case same.limit != r.limit || !countAlike(same.rule.Rule, r.rule.Rule):
		return r.rule.wrong("name", "found two different rules of one name, window and key in one call; give them different names")
	case same.member != r.member:
		return c.keyError(r.rule, r.rule.Distinct, "found two members for one count; expected one member for each call")
	case c.UpTo: // its requests take the same number from each rule
		return r.rule.wrong("requests", "found UpTo on two requests with one count; expected one request for each count")
	case r.member == "":
		same.cost += min(r.cost, math.MaxInt64-same.cost)
		same.fill(0)
	}
	return nil
}

// makeClaim makes the claim of a ruling. If the subject is blocked, or the limit is 0, makeClaim answers the claim. Such a rule refuses the call
// without a store. In shadow mode such a claim stays out of Claims, and stores decide the others.
func (c *call) makeClaim(r *ruling) {
	rule := r.rule
	c.waits, c.paused = c.waits || r.wait > 0, c.paused || r.pauseLeft > 0
	if r.limit == 0 && rule.Mode == ModeShadow {
		r.claim = new(engine.Claim)
	} else {
		n := len(c.Claims)
		c.Claims = c.Claims[:n+1]
		r.claim = &c.Claims[n]
	}
	*r.claim = rule.claim
	claim := r.claim
	claim.Subject, claim.Member, claim.Renewed = r.subject, r.member, c.givesBack
	claim.Blocked = r.blockLeft > 0
	claim.Refused = claim.Blocked || r.never()
	if claim.Refused && rule.Mode == ModeEnforce {
		c.isBlocked, c.never = c.isBlocked || claim.Blocked, c.never || !claim.Blocked
	}
	if rule.row.Releases {
		c.releases, claim.ID = true, rand.Uint64()
		claim.KeepTexts() // the store renews the permits
	}
	c.Report = c.Report || c.UpTo && rule.Mode == ModeShadow
	r.fill(0)
}

// checkCosts returns an error if a rule can never admit what the call costs. In shadow mode such a rule only reports the refusal: its claim asks
// for one permit, with NeverFits.
func (c *call) checkCosts() error {
	for i := range c.rulings {
		r := &c.rulings[i]
		if r.cost == 1 || r.claim.Refused || r.rule.Mode == ModeTrigger || c.UpTo { // one permit fits, a trigger refuses nothing, UpTo takes what there is
			continue
		}
		switch most, what := r.claim.Most(); {
		case r.cost <= most:
		case r.rule.Mode == ModeEnforce:
			return &NeverAdmissibleError{
				Method: c.method, Rule: r.rule.label, Key: shown(r.subject), Cost: r.cost, Limit: most, what: what,
			}
		default: // in shadow mode
			r.neverFits, r.claim.Cost, r.claim.Wait, c.Report = true, 1, engine.NeverFits, true
		}
	}
	return nil
}

// fill sets in the claim what the call asks for. waited is how long the call has waited. The claim gets the rest of the rule's wait.
func (r *ruling) fill(waited time.Duration) {
	claim := r.claim
	claim.Limit, claim.Burst = r.limit, r.rule.claim.Burst
	if r.limit != r.rule.Limit {
		claim.Burst = r.rule.capacity(r.limit)
	}
	if r.neverFits {
		return
	}
	claim.Cost, claim.Wait = r.cost, 0
	if r.wait > waited {
		claim.Wait = r.rule.delay(r.wait-waited, r.limit)
	}
	if r.rule.Mode == ModeTrigger { // it counts beyond its limit, up to a cost that always reaches it
		claim.Cost = min(r.cost, 2*maxLimit)
	}
}

// perform asks the rules' stores, and waits if the call has to. Then it tells the statistics, the caller's report, the trigger and the
// observers, in this order.
func (c *call) perform(ctx context.Context) error {
	var began time.Duration
	observed := len(c.limiter.observers) > 0 && !c.Peek
	if observed {
		began = c.limiter.elapsed()
	}
	c.wishes = wishesOf(ctx)
	c.wantsQuotas = c.Peek || c.wishes.report != nil
	if c.err == nil {
		c.err = c.decide(ctx)
	}
	if c.Peek {
		return c.err
	}
	c.mustRelease = c.releases && c.err == nil && c.verdict.Admitted
	if s := c.limiter.fleet.Stats; s != nil && (c.err == nil || c.isByPolicy()) {
		c.addTo(s)
	}
	if c.err == nil && c.wishes.report != nil {
		c.wishes.report.add(c.quotas())
	}
	if c.err == nil && c.verdict.Admitted && c.limiter.trigger != nil {
		c.fire(ctx)
	}
	if observed {
		c.observe(ctx, c.limiter.elapsed()-began)
	}
	c.mustRelease = false
	return c.err
}

// decide decides the call. A call without claims is admitted: no rule applies, or only some in shadow mode with a limit of 0.
func (c *call) decide(ctx context.Context) error {
	if err := c.checkCosts(); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return contextError(ctx, c.method)
	case c.refusedHere():
		c.verdict.Now = c.limiter.store.Time().UnixMicro()
		if c.isBlocked {
			c.verdict.Source = engine.SourceBlock
		}
		return nil
	case len(c.Claims) == 0:
		now := c.limiter.store.Time().UnixMicro()
		c.verdict = engine.Verdict{Now: now, At: now, Answer: engine.Answer{Admitted: true}}
		if c.UpTo && !c.Peek { // nothing limits what it takes
			c.verdict.Taken = c.rulings[0].cost
		}
		return nil
	}
	c.Report = c.Report || c.wantsQuotas
	if c.waits && c.keepDeadline(ctx) {
		return c.decideWithWaits(ctx)
	}
	return c.askStores(ctx)
}

// refusedHere reports whether the call is refused without asking any store.
func (c *call) refusedHere() bool { return c.never || c.isBlocked }

// askStores asks the stores once, unless a setting pauses a subject of the call. If earlier calls of this process wait for permits of a rule, the
// call only asks what each rule would answer. It is charged nothing, but a rule that refuses may begin a block.
func (c *call) askStores(ctx context.Context) error {
	var contested *ruling
	if c.releases {
		contested = c.contestedRule()
	}
	if c.paused {
		c.pauseHere()
	} else {
		report := c.Report
		c.Refused, c.Report, c.Failure = contested != nil, report || contested != nil, nil
		v, err := c.limiter.decider.Decide(ctx, &c.Call)
		c.Refused, c.Report = false, report
		if c.verdict = v; err != nil {
			return storeError(ctx, c.method, err)
		}
	}
	if c.releases {
		c.await(contested)
	}
	if !c.verdict.Admitted && (c.Peek || !c.AskAgain(c.verdict)) {
		c.verdict.At = 0 // the refusal is final, so there is no time at which the call will be admitted
		c.setSource()
	}
	return nil
}
