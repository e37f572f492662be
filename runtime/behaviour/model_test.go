package behaviour_test

import (
	"math/big"
	"slices"
	"sort"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A model is a limiter by definition: it keeps every event for ever and derives each answer from all of them.
// It is told the time, in microseconds since 1970.
type model struct {
	histories map[identity]history
	blocks    map[identity]int64 // until when
	decisions int
}

// identity says which rules share a budget. Limit and burst are not part of it.
type identity struct {
	name, window, key string
	scope             ratelimit.Scope
}

type history []event

// An event is permits taken by a decision, or all that a decision took given back.
type event struct {
	decision int
	rule     ratelimit.Rule // as it was then
	member   string
	cost     int64
	at       int64 // when the permits count as taken, which is later than now for a call that waits; or when they came back
	returned bool  // a later event gives this one back
	back     bool  // this event gives an earlier one back
	place    int64 // where that one counted

	extra, taken *big.Rat // of a bucket that warms up: the price
}

// An ask is what a call asks one rule. The rule's limit is the call's.
type ask struct {
	rule        ratelimit.Rule
	key, member string
	cost        int64
	wait        int64 // how long the rule may delay the call
}

// An outcome is what the model expects of a decision.
type outcome struct {
	never      bool  // a cost that its rule can never admit
	at         int64 // when the call is admitted
	retryAfter int64
	violations []ratelimit.Violation
	shadows    []ratelimit.Violation
	triggers   []ratelimit.Trigger
}

func (o outcome) allowed() bool { return !o.never && len(o.violations) == 0 }

func newModel() *model {
	return &model{histories: map[identity]history{}, blocks: map[identity]int64{}}
}

func (q ask) identity() identity {
	return identity{name: q.rule.Name, window: lawOf(q.rule).window(), key: q.key, scope: q.rule.Scope}
}

// countMembers takes the wait off a call that counts members.
func countMembers(asks []ask) []ask {
	if slices.ContainsFunc(asks, func(q ask) bool { return q.rule.Distinct != "" && q.cost > 0 }) {
		for i := range asks {
			asks[i].wait = 0
		}
	}
	return asks
}

// asksOf is what requests ask a limiter that may delay them.
func asksOf(requests []ratelimit.Request, wait int64) []ask {
	asks := make([]ask, len(requests))
	for i, q := range requests {
		asks[i] = ask{rule: q.Rule, key: q.Key, member: q.Member, cost: max(q.Cost, 1), wait: waitOf(q.Rule, wait)}
		if q.Rule.Mode != ratelimit.ModeEnforce {
			asks[i].wait = 0
		}
	}
	return countMembers(asks)
}

// peek is the outcome of a call at now.
func (m *model) peek(now int64, asks []ask) outcome {
	o := outcome{at: now}
	for _, q := range asks {
		if q.cost == 0 {
			continue
		}
		if q.cost > lawOf(q.rule).most() && q.rule.Mode == ratelimit.ModeEnforce {
			return outcome{never: true}
		}
		m.ask(now, q, &o)
	}
	return o
}

func (m *model) ask(now int64, q ask, o *outcome) {
	law, h := lawOf(q.rule), m.histories[q.identity()]
	v := ratelimit.Violation{Rule: q.rule.Name, Key: q.key, Limit: q.rule.Limit}
	switch {
	case q.rule.Mode == ratelimit.ModeTrigger:
		return
	case q.cost > law.most():
		o.shadows = append(o.shadows, v)
		return
	}
	at := earliest(law, h, now, q)
	if end, refused := m.refuses(now, at, q); refused {
		v.RetryAfter = micros(end - now)
		if q.rule.Block == 0 {
			v.Remaining = remaining(law, h, now, q)
		}
		if q.rule.Mode == ratelimit.ModeShadow {
			o.shadows = append(o.shadows, v)
			return
		}
		o.retryAfter = max(o.retryAfter, end-now)
		o.violations = append(o.violations, v)
		return
	}
	o.at = max(o.at, at)
}

// refuses reports whether a rule refuses what it could admit at a time, and until when.
func (m *model) refuses(now, earliest int64, q ask) (until int64, refused bool) {
	block := m.blocks[q.identity()]
	switch {
	case block > now && earliest <= now+q.wait:
		return block, true
	case block > now:
		return max(earliest, block), true
	case earliest > now+q.wait:
		return max(earliest, now+q.rule.Block.Microseconds()), true
	default:
		return earliest, false
	}
}

// allow is peek, and takes the permits if the call is allowed. The number stands for the decision in giveBack.
func (m *model) allow(now int64, asks []ask) (outcome, int) {
	o := m.peek(now, asks)
	if !o.allowed() {
		m.block(now, asks, o)
		return o, 0
	}
	m.decisions++
	for _, q := range asks {
		m.take(now, q, &o)
	}
	return o, m.decisions
}

func (m *model) block(now int64, asks []ask, o outcome) {
	for _, q := range asks {
		id := q.identity()
		if o.never || q.rule.Block == 0 || q.cost == 0 || m.blocks[id] > now {
			continue
		}
		if earliest(lawOf(q.rule), m.histories[id], now, q) > now+q.wait {
			m.blocks[id] = now + q.rule.Block.Microseconds()
		}
	}
}

func (m *model) take(now int64, q ask, o *outcome) {
	law, id := lawOf(q.rule), q.identity()
	h := m.histories[id]
	switch q.rule.Mode {
	case ratelimit.ModeShadow:
		if q.cost > law.most() || earliest(law, h, now, q) > now {
			return // reported, and not charged
		}
	case ratelimit.ModeTrigger:
		if q.rule.Limit == 0 {
			return
		}
	}
	if q.cost == 0 || isKnown(law, h, o.at, q.member) {
		return
	}
	e := event{decision: m.decisions, rule: q.rule, member: q.member, at: o.at, cost: q.cost}
	if warm, ok := law.(warmLaw); ok {
		e.extra, e.taken = warm.price(h, e.at, e.cost)
	}
	m.histories[id] = append(h, e)
	if q.rule.Mode != ratelimit.ModeTrigger {
		return
	}
	if used := law.used(m.histories[id], o.at); used >= q.rule.Limit && used-q.cost < q.rule.Limit {
		o.triggers = append(o.triggers, ratelimit.Trigger{Rule: q.rule.Name, Key: q.key, Limit: q.rule.Limit, Used: used})
	}
}

// giveBack undoes one decision, once, wherever it took something that is still remembered from a rule that is wanted.
func (m *model) giveBack(now int64, decision int, wanted func(ratelimit.Rule) bool) {
	for id, h := range m.histories {
		i := slices.IndexFunc(h, func(e event) bool { return e.decision == decision })
		if i < 0 || h[i].returned || !wanted(h[i].rule) {
			continue
		}
		h[i].returned = true
		back := h[i]
		back.back, back.place, back.at = true, back.at, now
		m.histories[id] = append(h, back)
	}
}

func all(ratelimit.Rule) bool { return true }

func refunds(r ratelimit.Rule) bool { return r.Refund == ratelimit.RefundError }

// turning reports whether something that a decision was charged to turns between two instants, so that it matters when
// exactly it is given back.
func (m *model) turning(from, to int64, decision int) bool {
	for _, h := range m.histories {
		for _, e := range h {
			if e.decision != decision {
				continue
			}
			for _, t := range lawOf(e.rule).turns(h, from, ask{rule: e.rule, cost: 0}) {
				if t >= from && t <= to+1 {
					return true
				}
			}
		}
	}
	return false
}

func (m *model) reset(asks []ask) {
	for _, q := range asks {
		delete(m.histories, q.identity())
		delete(m.blocks, q.identity())
	}
}

// earliest is the first instant from now on at which the ask fits: it can only begin to fit where the law says that it may.
func earliest(law law, h history, now int64, q ask) int64 {
	if law.fits(h, now, q) {
		return now
	}
	candidates := law.turns(h, now, q)
	slices.Sort(candidates)
	for _, t := range candidates {
		if t >= now && law.fits(h, t, q) {
			return t
		}
	}
	panic("the law says neither never nor when")
}

// remaining is the largest cost below the refused one that fits now. What fits, fits at a smaller cost.
func remaining(law law, h history, now int64, refused ask) int64 {
	return int64(sort.Search(int(refused.cost-1), func(i int) bool {
		refused.cost = int64(i) + 1
		return !law.fits(h, now, refused)
	}))
}

// sum adds the permits taken from an instant on, by calls that still wait as well, and not given back.
func (h history) sum(from int64) int64 {
	var n int64
	for _, e := range h {
		if !e.back && !e.returned && e.at >= from {
			n += e.cost
		}
	}
	return n
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
