package decide

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/line"
)

// Call is one decision: what it asks, and the verdict. Fields with capitals are for package ratelimit, and those of engine.Call. Calls are pooled, so
// that a decision in this process allocates nothing.
type Call struct {
	perUse
	Step               // what it asks: a claim for each of Asked, except rules in shadow mode with a limit of 0
	Asked  []Asked     // one for each count of the rules that apply
	joined []joined    // one for each rule that has the count of an earlier one
	noCost []charge    // one for each rule that applies at a cost of 0
	waiter line.Waiter // the call among those that wait; decideWithWaits sets it
}

// Asked is a claim of a call, with what only this process has to know of it.
type Asked struct {
	Rule      *Rule
	Claim     *engine.Claim // what it asks a store, and the answer
	Index     int           // of the rule in its method, or of the request
	Cost      int64         // what the call costs. The claim may ask for less: see ask, checkCosts and divide
	own       int64         // what the rule itself costs, without those that have joined its count
	Limit     int64         // of the call. A failure policy may divide that of the claim
	BlockLeft time.Duration // how long a setting still blocks the subject
	pauseLeft time.Duration // how long a setting still pauses the subject
	wait      time.Duration // how long the rule may delay the call
}

// joined is a rule whose count an earlier rule of the call has. The two have one claim, and their costs are added.
type joined struct {
	index int   // of the rule in its method, or of the request
	to    int   // the index in Asked, or in the list of Charges
	cost  int64 // of the rule itself
}

// perUse has the fields of a call that are reset for every use of a pooled call.
type perUse struct {
	method *Method // nil for requests
	plan   *plan   // of the method
	next   int     // the index of the next rule or request
	err    error   // why the call cannot be decided
	wishes Wishes  // of the caller
	visits station // all stations of its rules

	wait        time.Duration // how long a call of requests may wait; 0 for Allow and Peek
	waits       bool          // a rule may delay the call
	paused      bool          // a setting pauses one of its subjects
	givesBack   bool          // a wrapper keeps the charge, to give it back
	mustRelease bool          // the call has permits to release, and perform goes on; if an observer or a trigger panics, Free releases them
	never       bool          // a rule of limit 0 refuses the call
	isBlocked   bool          // one of its subjects is blocked

	awaited    *Asked    // the rule whose permits others must release first, or nil
	waitsSince time.Time // when it began to wait
	until      time.Time // when its place comes, or it asks again; of the calls that are held in a line only the first one does

	verdict   engine.Verdict
	waited    time.Duration // how long the call has waited; an admitted call counts the time until its place at once
	abandoned bool          // the context ended while the call waited
}

// Use is what one rule charges a call.
type Use struct {
	Key    string // the subject; "" for a rule without a key
	Cost   int64  // permits; with 0 the rule refuses nothing, and charges what a settlement says
	Member string // the member to count, for a rule with Distinct
	Limit  int64  // of a rule with Computed
	Skip   bool   // the rule does not apply to the call
}

// Wishes are what the caller wants to know of the calls under a context. They are one value of the context, because each look into a context
// takes time.
type Wishes struct {
	Report Reporter
	Charge *Charge
}

// Reporter collects what the rules of decisions have left.
type Reporter interface{ Add(c *Call) }

type wishesKey struct{}

// WishesOf returns the wishes of the callers under ctx.
func WishesOf(ctx context.Context) Wishes {
	w, _ := ctx.Value(wishesKey{}).(Wishes)
	return w
}

// In returns a context with these wishes in place of those of ctx.
func (w Wishes) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, wishesKey{}, w)
}

var calls = sync.Pool{New: func() any { return new(Call) }}

// open returns a call with room for n rules.
func (l *Limiter) open(n int) *Call {
	c := calls.Get().(*Call)
	if cap(c.Asked) < n {
		c.Asked, c.Claims, c.rules = make([]Asked, n), make([]engine.Claim, n), make([]*Rule, n)
	}
	claims, rules := c.Claims[:0], c.rules[:0]
	c.perUse = perUse{}
	c.Step = Step{limiter: l, rules: rules}
	c.Prefix, c.Claims = l.prefix, claims
	c.Asked, c.joined, c.noCost = c.Asked[:0], c.joined[:0], c.noCost[:0]
	return c
}

// Open returns a call of a method. Call Add once for each of its rules, in their order, and then Take. givesBack says that the caller keeps
// the charge, to give it back.
func (m *Method) Open(givesBack bool) *Call {
	c := m.limiter.open(len(m.rules.All))
	c.method, c.plan, c.givesBack = m, m.current(), givesBack
	return c
}

// Add sets what the next rule charges.
func (c *Call) Add(use *Use) {
	if c.err == nil && c.next < len(c.plan.rules) {
		c.err = c.ask(&c.plan.rules[c.next], use)
	}
	c.next++ // Take reports an excess
}

// Take decides the call, and waits if it has to. It returns the charges of an admitted call, or nil if nobody wants to change them. Then the call
// must not be used any more.
func (c *Call) Take(ctx context.Context) (*Charges, error) {
	defer c.Free()
	if c.next != len(c.plan.rules) { // a rule without a charge would not limit the call
		c.err = c.limiter.public.KeyError(c.Method(), nil, "", fmt.Sprintf("found %d keys for %d rules", c.next, len(c.plan.rules)))
	}
	if err := c.perform(ctx); err != nil {
		return nil, err
	}
	if !c.verdict.Admitted {
		return nil, c.limiter.public.Refusal(c)
	}
	if !c.givesBack && c.wishes.Charge == nil {
		return nil, nil
	}
	all := c.Charges()
	c.wishes.Charge.set(all)
	return all, nil
}

// OpenRequests returns a call of n requests, which may wait that long. Call AddRequest once for each of them, then Perform, and Free at last.
func (l *Limiter) OpenRequests(n int, wait time.Duration, peek bool) *Call {
	c := l.open(n)
	c.wait, c.Peek = wait, peek
	return c
}

// AddRequest adds a request of one rule.
func (c *Call) AddRequest(m *Method, use *Use) error {
	p := &m.current().rules[0]
	if p.err == nil && !c.Peek && !m.noted.Load() {
		m.note()
	}
	err := c.ask(p, use)
	c.next++
	return err
}

// Perform decides the call, unless err says that it cannot be decided.
func (c *Call) Perform(ctx context.Context, err error) error {
	c.err = err
	return c.perform(ctx)
}

// Free returns the call to the pool. If an observer or a trigger has panicked, the program's call does not run, and its permits are released.
func (c *Call) Free() {
	if c.mustRelease {
		c.mustRelease = false
		c.Charges().Release(context.Background())
	}
	calls.Put(c)
}

// ask adds a rule to what the call asks. A rule with the same count as an earlier one adds its cost to that one.
func (c *Call) ask(p *planned, use *Use) error {
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
	}
	if c.method == nil || p.mayShare {
		if same := c.earlier(a); same >= 0 {
			c.joined = append(c.joined, joined{c.next, same, use.Cost})
			return c.addCost(&c.Asked[same], a)
		}
	}
	c.Asked = c.Asked[:n+1]
	c.keep(a)
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
	if p.stations&hashed == 0 {
		subject = key.Subject(use.Key)
	} else {
		subject = l.Subject(p.declared.PlainKeys, use.Key)
	}
	a.BlockLeft, a.pauseLeft, a.wait = 0, 0, 0
	if p.stations&ofKey != 0 {
		p, a.BlockLeft, a.pauseLeft = p.forKey(l, subject)
	}
	rule, claim := p.rule, a.Claim
	a.Rule, a.Index, a.Limit = rule, c.next, rule.LimitFor(use.Limit)
	a.Cost, a.own = use.Cost, use.Cost
	claim.Ask, claim.Delta = rule.Ask, 0
	claim.Clear()
	claim.Subject, claim.Renewed = subject, c.givesBack
	c.visits |= p.stations
	if p.stations&unenforced == 0 {
		if a.wait = c.wait; c.method != nil {
			a.wait = rule.Wait
		}
	}
	if err := c.check(a, use); err != nil {
		return err
	}
	a.ask(0)
	if p.stations&members != 0 {
		claim.Member = key.Member(l.hidden(rule.PlainKeys, use.Member))
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
	case rule.Computed:
		if wrong := rule.Declared.WrongLimit(a.Limit); wrong != "" {
			return c.keyError(rule, "", "the limit of this call: "+wrong)
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
		if err := rule.Declared.CannotWait(); err != nil {
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
	if err != nil {
		return
	}
	claim := engine.Claim{Ask: a.Rule.Ask}
	claim.Subject, claim.Limit = a.Claim.Subject, max(1, a.Limit)
	claim.Burst = a.Rule.Capacity(claim.Limit)
	claim.KeepTexts()
	c.noCost = append(c.noCost, charge{rule: a.Rule, index: a.Index, claim: claim, noCost: true})
}

// ask sets what the claim asks if the call has waited that long. A trigger counts beyond its limit, up to a cost that always reaches it. In shadow
// mode a cost that never fits stays as checkCosts has set it.
func (a *Asked) ask(waited time.Duration) {
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
	switch {
	case same.Limit != a.Limit || !same.Rule.Declared.CountsLike(a.Rule.Declared):
		return wrong("name", "found two different rules of one name, window and key in one call; give them different names")
	case same.Claim.Member != a.Claim.Member:
		return c.keyError(a.Rule, a.Rule.Distinct, "found two members for one count; expected one member for each call")
	case c.UpTo: // its requests take the same number from each rule
		return wrong("requests", "found UpTo on two requests with one count; expected one request for each count")
	case a.Claim.Member == "":
		same.Cost += min(a.Cost, math.MaxInt64-same.Cost)
		same.ask(0)
		c.visits |= costly
	}
	return nil
}

// keep keeps a claim that the call asks. If the subject is blocked, or the limit is 0, keep answers the claim: such a rule refuses the call without a
// store. In shadow mode such a claim stays out of Claims, and stores decide the others.
func (c *Call) keep(a *Asked) {
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
		claim.ID = rand.Uint64()
		claim.KeepTexts() // the store renews the permits
	}
	c.Report = c.Report || c.UpTo && claim.Mode == engine.Shadow
}

// checkCosts returns an error if a rule can never admit what the call costs. In shadow mode such a rule only reports the refusal: its claim asks
// for one permit, with NeverFits.
func (c *Call) checkCosts() error {
	for i := range c.Asked {
		a := &c.Asked[i]
		claim := a.Claim
		if a.Cost == 1 || claim.Refused || claim.Mode == engine.Trigger || c.UpTo { // one permit fits, a trigger refuses nothing, UpTo takes what there is
			continue
		}
		switch most, what := claim.Most(); {
		case a.Cost <= most:
		case claim.Mode == engine.Enforce:
			return c.limiter.public.TooCostly(c, a, most, what)
		default: // in shadow mode
			claim.Cost, claim.Wait, c.Report = 1, engine.NeverFits, true
		}
	}
	return nil
}

// perform asks the rules' stores, and waits if the call has to. Then it tells the statistics, the caller's report, the trigger and the
// observers, in this order.
func (c *Call) perform(ctx context.Context) error {
	l := c.limiter
	var began time.Duration
	observed := l.public.Observe != nil && !c.Peek
	if observed {
		began = l.elapsed()
	}
	c.wishes = WishesOf(ctx)
	if c.err == nil {
		c.err = c.decide(ctx)
	}
	if c.Peek {
		return c.err
	}
	admitted := c.err == nil && c.verdict.Admitted
	c.mustRelease = admitted && c.visits&releases != 0
	if s := l.fleet.Stats; s != nil && (c.err == nil || c.isByPolicy()) {
		c.addTo(s)
	}
	if c.err == nil && c.wishes.Report != nil {
		c.wishes.Report.Add(c)
	}
	if admitted && l.public.Fire != nil && c.visits&unenforced != 0 {
		l.public.Fire(ctx, c)
	}
	if observed {
		l.public.Observe(ctx, c, l.elapsed()-began)
	}
	c.mustRelease = false
	return c.err
}

// decide decides the call. A call without claims is admitted: no rule applies, or only some in shadow mode with a limit of 0.
func (c *Call) decide(ctx context.Context) error {
	if c.visits&costly != 0 {
		if err := c.checkCosts(); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return ContextError(ctx, c.Method())
	case c.RefusedHere():
		c.verdict.Now = c.limiter.store.Time().UnixMicro()
		if c.isBlocked {
			c.verdict.Source = engine.SourceBlock
		}
		return nil
	case len(c.Claims) == 0:
		now := c.limiter.store.Time().UnixMicro()
		c.verdict = engine.Verdict{Now: now, At: now, Finding: engine.Finding{Admitted: true}}
		if c.UpTo && !c.Peek { // nothing limits what it takes
			c.verdict.Taken = c.Asked[0].Cost
		}
		return nil
	}
	c.Report = c.Report || c.WantsQuotas()
	if c.waits && c.keepDeadline(ctx) {
		return c.decideWithWaits(ctx)
	}
	return c.askStores(ctx)
}

// decider returns who decides the call. Most calls have no rule of instance scope.
func (c *Call) decider() backend.Decider {
	if c.visits&ofProcess == 0 {
		return (*ofFleet)(&c.Step)
	}
	return c.split()
}

// askStores asks the stores once, unless a setting pauses a subject of the call. If earlier calls of this process wait for permits of a rule, the
// call only asks what each rule would answer. It is charged nothing, but a rule that refuses may begin a block.
func (c *Call) askStores(ctx context.Context) error {
	var contested *Asked
	if c.visits&releases != 0 {
		contested = c.contestedRule()
	}
	c.by, c.failure, c.answered = byStore, nil, false
	if c.paused {
		c.pauseHere()
	} else {
		report := c.Report
		c.Refused, c.Report = contested != nil, report || contested != nil
		v, err := c.decider().Decide(ctx, &c.Call)
		c.Refused, c.Report, c.verdict = false, report, v
		c.mustRelease = err == nil && v.Admitted && !c.Peek && c.visits&releases != 0
		c.noteStore(ctx)
		if err != nil {
			return c.limiter.StoreError(ctx, c.Method(), err)
		}
	}
	if c.visits&releases != 0 {
		c.noteAwaited(contested)
	}
	if !c.verdict.Admitted && (c.Peek || !c.AskAgain(c.verdict)) {
		c.verdict.At = 0 // the refusal is final, so there is no time at which the call will be admitted
		c.setSource()
	}
	return nil
}
