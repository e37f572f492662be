package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Most calls in this process are simple: one rule, one permit, admitted at once, and nobody asks for more. Making a call of them would
// take twice the time that the decision takes.

// plainClaim returns the claim of one permit under a rule that may only admit or refuse, or nil.
func (p *prepared) plainClaim() *engine.Claim {
	if p.Mode != ModeEnforce || p.kind().IsVariant() || p.Limit == 0 {
		return nil
	}
	a := asked{rule: p, cost: 1, limit: p.Limit}
	claim := a.newClaim()
	return &claim
}

// takeAtOnce charges one permit to a rule if the call, of a method or of none, is simple. It returns the time, by the store's clock, and
// whether it did; if not, nothing is done.
func (l *Limiter) takeAtOnce(ctx context.Context, method string, rule *prepared, subject string) (at int64, admitted bool) {
	store := l.process
	if rule.Scope == ScopeInstance {
		store = l.local
	}
	switch {
	case store == nil, rule.plain == nil, subject == "" && rule.Key != "", len(subject) > maxText, ctx.Err() != nil,
		reportOf(ctx) != nil, l.overrides.table.Load() != nil, l.blocks.table.Load() != nil, rule.usedIn.Load() != l.used.turn.Load():
		return 0, false
	}
	l.overrides.follow()
	subject = l.subject(&rule.Rule, subject)
	at, admitted = store.Admit(l.prefix, []*engine.Claim{rule.plain}, []string{subject})
	if admitted && l.observed() {
		l.observeSimple(ctx, method, rule, subject, store.Since(at))
	}
	return at, admitted
}

// simpleEvent is an [Event] of one rule.
type simpleEvent struct {
	Event
	outcome [1]Outcome
}

var simpleEvents = sync.Pool{New: func() any { return new(simpleEvent) }}

// observeSimple tells of a simple call that was admitted.
func (l *Limiter) observeSimple(ctx context.Context, method string, rule *prepared, subject string, took time.Duration) {
	e := simpleEvents.Get().(*simpleEvent)
	e.outcome[0] = Outcome{Rule: rule.shown, Window: rule.window, Key: key.Shown(subject), Limit: rule.Limit, Cost: 1}
	e.Event = Event{Kind: EventAdmitted, Method: method, Rules: e.outcome[:], Took: took}
	l.observe(ctx, &e.Event)
	simpleEvents.Put(e)
}

// allowAtOnce decides the requests of Allow if the call is simple, and reports whether it did.
func (l *Limiter) allowAtOnce(ctx context.Context, requests []Request) (Decision, bool) {
	if len(requests) != 1 || requests[0].Cost > 1 || requests[0].Cost < 0 || requests[0].UpTo {
		return Decision{}, false
	}
	rule, err := l.prepare(&requests[0].Rule)
	if err != nil {
		return Decision{}, false
	}
	at, admitted := l.takeAtOnce(ctx, "", rule, requests[0].Key)
	if !admitted {
		return Decision{}, false
	}
	kept := &charged{limiter: l, fleet: l.store, simple: simple{rule, requests[0].Key, at}}
	return Decision{Allowed: true, At: time.UnixMicro(at), charged: kept}, true
}

// simple is what a simple call took: a permit of a rule.
type simple struct {
	rule    *prepared // nil if the call was not simple
	subject string
	at      int64
}

// open makes the lists of what a simple call took, if this is one.
func (c *charged) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	rule := c.simple.rule
	if rule == nil || c.held != nil {
		return
	}
	claim := *rule.plain
	claim.Subject, claim.Charged, claim.At = c.limiter.subject(&rule.Rule, c.simple.subject), 1, c.simple.at
	c.held, c.owners = []held{{claim: claim, local: rule.Scope == ScopeInstance}}, []int{0}
}
