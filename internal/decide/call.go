package decide

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
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
	Cost      int64         // what the call costs. The claim may ask for less: see setAsk, checkCosts and divide
	own       int64         // what the rule itself costs, without those that have joined its count
	Limit     int64         // of the call. A failure policy may divide that of the claim
	text      string        // the key as the caller writes it
	given     int64         // the limit that the call brings, for a rule with Computed
	Before    int64         // permits that the rule has charged, if the call asks for more
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

	unlimited []Asked // the rules that do not limit the call: see unlimited.go
	barred    int     // how many of them are the last ones of Asked, because a block or a pause refuses the call

	wait        time.Duration // how long a call of requests may wait; 0 for Allow and Peek
	waits       bool          // a rule may delay the call
	paused      bool          // a setting pauses one of its subjects
	givesBack   bool          // a wrapper keeps the charge, to give it back
	grows       *charge       // what the next rule adds to; nil unless the call asks for more permits of a call that runs
	mustRelease bool          // the call has permits to release, and perform goes on; if an observer or a trigger panics, Free releases them
	never       bool          // a rule of limit 0 refuses the call
	isBlocked   bool          // one of its subjects is blocked

	began      time.Duration // when it began, if it is observed
	awaited    *Asked        // the rule whose permits others must release first, or nil
	waitsSince time.Time     // when it began to wait
	until      time.Time     // when its place comes, or it asks again; of the calls that are held in a line only the first one does

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

	Anchor time.Time // when the windows begin, for a rule with Every; zero if there is none
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
		c.err = c.addRule(&c.plan.rules[c.next], use)
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
	if peek {
		n *= 2 // a rule may have two counts
	}
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
	err := c.addRule(p, use)
	if n := len(c.Asked); c.Peek && n > 0 && c.Asked[n-1].Rule.Other != nil && err == nil { // nobody knows which count the next call has
		use.Limit = engine.MaxAmounts
		err = c.addRule(p, use)
	}
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
	c.ask(ctx)
	if !c.Peek {
		c.tell(ctx)
	}
	return c.err
}

// ask decides the call, unless c.err says that it cannot be decided.
func (c *Call) ask(ctx context.Context) {
	if c.limiter.public.Observe != nil && !c.Peek {
		c.began = c.limiter.elapsed()
	}
	c.wishes = WishesOf(ctx)
	if c.err == nil {
		c.err = c.decide(ctx)
	}
}

// tell tells all of a decision who want to know of it.
func (c *Call) tell(ctx context.Context) {
	l := c.limiter
	admitted := c.err == nil && c.verdict.Admitted
	c.mustRelease = admitted && c.visits&releases != 0
	if s := l.fleet.Stats; s != nil && !c.Grows && (c.err == nil || c.isByPolicy()) {
		c.addTo(s)
	}
	if c.err == nil && c.wishes.Report != nil {
		c.wishes.Report.Add(c)
	}
	if admitted && l.public.Fire != nil && c.visits&unenforced != 0 {
		l.public.Fire(ctx, c)
	}
	if l.public.Observe != nil {
		l.public.Observe(ctx, c, l.elapsed()-c.began)
	}
	c.mustRelease = false
}

// decide decides the call. A call without claims is admitted: no rule limits it, or only some in shadow mode with a limit of 0 do.
func (c *Call) decide(ctx context.Context) error {
	if c.visits&costly != 0 {
		if err := c.checkCosts(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ContextError(ctx, c.Method())
	}
	if err := c.bar(ctx); err != nil || c.decideHere() {
		return err
	}
	c.Report = c.Report || c.WantsQuotas()
	switch mayWait := c.waits && c.keepDeadline(ctx); {
	case c.Reserves:
		return c.reserve(ctx)
	case mayWait:
		return c.decideWithWaits(ctx)
	case c.waits && ended(ctx) != nil:
		return ContextError(ctx, c.Method())
	}
	return c.askStores(ctx)
}

// decideHere decides the call if no store need be asked.
func (c *Call) decideHere() bool {
	switch now := c.limiter.store.Time().UnixMicro; {
	case c.refusedHere():
		c.verdict = engine.Verdict{Now: now()}
		if c.isBlocked {
			c.verdict.Source = engine.SourceBlock
		}
	case len(c.Claims) == 0:
		at := now()
		c.verdict = engine.Verdict{Now: at, At: at, Finding: engine.Finding{Admitted: true}}
		if c.UpTo && !c.Peek { // nothing limits what it takes
			c.verdict.Taken = c.Asked[0].Cost
		}
	default:
		return false
	}
	return true
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
		if !c.Grows { // Add does so when the charges are no longer locked
			c.noteStore(ctx)
		}
		if err != nil {
			return c.limiter.StoreError(ctx, c.Method(), c.explain(err))
		}
	}
	if c.visits&releases != 0 {
		c.noteAwaited(contested)
	}
	if c.Reserves && c.AskAgain(c.verdict) {
		c.refuseForNow()
	}
	if !c.verdict.Admitted && (c.Peek || !c.AskAgain(c.verdict)) {
		c.verdict.At = 0 // the refusal is final, so there is no time at which the call will be admitted
		c.setSource()
	}
	return nil
}

// setSource makes a pause or a block that refused the call the source of the decision. If a failure policy decided, that stays the source.
func (c *Call) setSource() {
	if c.isByPolicy() {
		return
	}
	if c.PausedUntil() > 0 {
		c.verdict.Source = engine.SourcePause
	}
	for i := range c.Claims {
		if claim := &c.Claims[i]; claim.Blocked && claim.Mode == engine.Enforce {
			c.verdict.Source = engine.SourceBlock
		}
	}
}
