package behaviour_test

import (
	"slices"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A model is a limiter by definition: it keeps every event for ever and derives each answer from all of them.
// It is told the time, in microseconds since 1970.
type model struct {
	histories map[identity]history
	decisions int
}

// identity says which rules share a budget. Limit and burst are not part of it.
type identity struct {
	name, window, key string
}

type history []event

// An event is permits taken by a decision, or all that a decision took given back.
type event struct {
	decision int
	rule     ratelimit.Rule // as it was then
	cost     int64
	at       int64 // when the permits were taken; of no meaning for a return
	returned bool  // a later event gives this one back
	back     bool  // this event gives an earlier one back
}

// An outcome is what the model expects of a decision.
type outcome struct {
	never      bool // a cost that its rule can never admit
	retryAfter int64
	violations []ratelimit.Violation
}

func (o outcome) allowed() bool { return !o.never && len(o.violations) == 0 }

func newModel() *model {
	return &model{histories: map[identity]history{}}
}

func identify(q ratelimit.Request) identity {
	return identity{name: q.Rule.Name, window: lawOf(q.Rule).window(), key: q.Key}
}

// peek is the outcome of a call at now.
func (m *model) peek(now int64, requests []ratelimit.Request) outcome {
	var o outcome
	for _, q := range requests {
		law, h := lawOf(q.Rule), m.histories[identify(q)]
		if q.Cost > law.most() {
			return outcome{never: true}
		}
		wait := earliest(law, h, now, q.Cost) - now
		if wait == 0 {
			continue
		}
		o.retryAfter = max(o.retryAfter, wait)
		o.violations = append(o.violations, ratelimit.Violation{
			Rule: q.Rule.Name, Key: q.Key, Limit: q.Rule.Limit,
			Remaining:  remaining(law, h, now, q.Cost),
			RetryAfter: micros(wait),
		})
	}
	return o
}

// allow is peek, and takes the permits if the call is allowed. The number stands for the decision in giveBack.
func (m *model) allow(now int64, requests []ratelimit.Request) (outcome, int) {
	o := m.peek(now, requests)
	if !o.allowed() {
		return o, 0
	}
	m.decisions++
	for _, q := range requests {
		id := identify(q)
		m.histories[id] = append(m.histories[id], event{decision: m.decisions, rule: q.Rule, at: now, cost: q.Cost})
	}
	return o, m.decisions
}

// giveBack undoes one decision, once, wherever it took something that is still remembered.
func (m *model) giveBack(decision int) {
	for id, h := range m.histories {
		i := slices.IndexFunc(h, func(e event) bool { return e.decision == decision })
		if i < 0 || h[i].returned {
			continue
		}
		h[i].returned = true
		m.histories[id] = append(h, event{decision: decision, rule: h[i].rule, cost: h[i].cost, back: true})
	}
}

func (m *model) reset(requests []ratelimit.Request) {
	for _, q := range requests {
		delete(m.histories, identify(q))
	}
}

// earliest is the first instant from now on at which cost fits: it can only begin to fit where the law says that it may.
func earliest(law law, h history, now, cost int64) int64 {
	candidates := append(law.turns(h, now, cost), now)
	slices.Sort(candidates)
	for _, t := range candidates {
		if t >= now && law.fits(h, t, cost) {
			return t
		}
	}
	panic("the law says neither never nor when")
}

// remaining is the largest cost below the refused one that fits now.
func remaining(law law, h history, now, refused int64) int64 {
	for cost := refused - 1; cost > 0; cost-- {
		if law.fits(h, now, cost) {
			return cost
		}
	}
	return 0
}

// sum adds the permits taken from one instant to another, both included, and not given back.
func (h history) sum(from, to int64) int64 {
	var n int64
	for _, e := range h {
		if !e.back && !e.returned && e.at >= from && e.at <= to {
			n += e.cost
		}
	}
	return n
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
