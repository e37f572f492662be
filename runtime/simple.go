package ratelimit

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// Most calls that this process decides are simple: they take one permit from each rule, are admitted at once, and no report is wanted. To
// make a call for each of them would take twice the time of the decision itself.

// takeAtOnce charges one permit to each rule if the call is simple. It returns the time by the store's clock, and reports whether it charged
// the rules; otherwise it charged nothing. method is "" for requests. It may overwrite the subjects.
func (l *Limiter) takeAtOnce(ctx context.Context, method string, rules []*prepared, subjects []string) (at int64, admitted bool) {
	switch {
	case len(rules) == 0, ctx.Err() != nil, reportOf(ctx) != nil, l.settings.current.Load() != nil:
		return 0, false
	}
	store, turn := l.storeHere(rules[0].Scope), l.used.turn.Load()
	var claims [bridge.Few]*engine.Claim
	for i, rule := range rules {
		switch text := subjects[i]; {
		case store == nil, !rule.simple, rule.Scope != rules[0].Scope, !rule.isUsedIn(turn), text == "" && rule.Key != "", len(text) > maxText:
			return 0, false
		}
		claims[i] = &rule.claim
	}
	l.settings.follow()
	for i, rule := range rules {
		subjects[i] = l.subject(&rule.Rule, subjects[i])
	}
	at, admitted = store.Admit(l.prefix, claims[:len(rules)], subjects)
	if admitted && l.observed() {
		l.observeSimple(ctx, method, rules, subjects, store.Since(at))
	}
	return at, admitted
}

// storeHere returns the store in this process that counts the rules of a scope, or nil.
func (l *Limiter) storeHere(scope Scope) *memory.Store {
	if scope == ScopeInstance {
		return l.local
	}
	return l.process
}

// observeSimple calls the observers for a simple call that was admitted.
func (l *Limiter) observeSimple(ctx context.Context, method string, rules []*prepared, subjects []string, took time.Duration) {
	c := calls.Get().(*call)
	defer c.free()
	c.event = Event{Kind: EventAdmitted, Method: method, Rules: c.event.Rules[:0], Took: took}
	for i, rule := range rules {
		c.event.Rules = append(c.event.Rules, Outcome{Rule: rule.shown, Window: rule.window, Key: key.Shown(subjects[i]), Limit: rule.Limit, Cost: 1})
	}
	l.observe(ctx, &c.event)
}

// allowAtOnce decides the requests of Allow if the call is simple, and reports whether it did.
func (l *Limiter) allowAtOnce(ctx context.Context, requests []Request) (Decision, bool) {
	if len(requests) == 0 || len(requests) > bridge.Few || l.storeHere(requests[0].Rule.Scope) == nil {
		return Decision{}, false
	}
	var rules [bridge.Few]*prepared
	var subjects [bridge.Few]string
	for i := range requests {
		r := &requests[i]
		rule, err := l.prepare(&r.Rule)
		if err != nil || r.Cost > 1 || r.Cost < 0 || r.UpTo {
			return Decision{}, false
		}
		rules[i], subjects[i] = rule, r.Key
	}
	n := len(requests)
	at, admitted := l.takeAtOnce(ctx, "", rules[:n], subjects[:n])
	if !admitted {
		return Decision{}, false
	}
	kept := &struct {
		charged
		only [1]simple // most calls have one rule; this saves them a second allocation
	}{charged: charged{limiter: l, fleet: l.store}}
	kept.simple = kept.only[:0]
	for i := range n {
		kept.simple = append(kept.simple, simple{rules[i], subjects[i], at})
	}
	return Decision{Allowed: true, At: time.UnixMicro(at), charged: &kept.charged}, true
}

// simple is one permit that a simple call took from a rule.
type simple struct {
	rule    *prepared
	subject string
	at      int64
}

// open makes held and owners from the charges of a simple call.
func (c *charged) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.simple {
		claim := s.rule.claim
		claim.Subject, claim.Charged, claim.At = s.subject, 1, s.at
		c.held, c.owners = append(c.held, held{s.rule, claim}), append(c.owners, i)
	}
	c.simple = nil
}
