package behaviour_test

import (
	"math/big"
	"slices"
	"sort"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A model is a limiter that follows the definitions: it keeps every event for ever and computes each answer from all of them. It gets the time as
// an argument, in microseconds since 1970.
type model struct {
	histories map[identity]history
	blocks    map[identity][2]int64 // when the last block of each ends, and how long it is
	decisions int
}

// identity identifies a budget. Limit and burst are not part of it.
type identity struct {
	name, window, key string
	scope             ratelimit.Scope
}

type history []event

// An event is a call that asked a bucket, a charge of a decision, or the refund of a charge.
type event struct {
	decision int
	rule     ratelimit.Rule // the rule as it was at that time
	member   string
	cost     int64
	wait     int64 // how long the rule could delay the call
	now      int64 // when the event happened
	at       int64 // when the permits count as taken; later than now for a waiting call
	asked    bool  // this event is a call that asked, at the rule's limit
	back     bool  // this event is a refund
	returned bool  // a later event refunds this one
	kept     bool  // the permits of a runningLaw do not end before they are given back

	extra, taken *big.Rat // for a warm-up: see price
}

// An ask is what a call asks one rule. The rule's limit is the call's.
type ask struct {
	rule        ratelimit.Rule
	key, member string
	cost        int64
	patience    int64 // how long the rule may delay the call in total
	wait        int64 // how long it may still delay the call, also bounded by its queue
	kept        bool  // see event
}

// An outcome is what the model expects of a decision.
type outcome struct {
	never      bool  // the rule can never admit the cost
	again      bool  // no place is kept: the call sleeps and asks again
	unplaced   bool  // no place is kept, and the call does not ask again
	at         int64 // when the call is admitted, or asks again
	retryAfter int64
	violations []ratelimit.Violation
	shadows    []ratelimit.Violation
	triggers   []ratelimit.Trigger
}

func (o outcome) allowed() bool { return !o.never && !o.again && len(o.violations) == 0 }

func newModel() *model {
	return &model{histories: map[identity]history{}, blocks: map[identity][2]int64{}}
}

func (q ask) identity() identity {
	return identity{name: q.rule.Name, window: lawOf(q.rule).window(), key: q.key, scope: q.rule.Scope}
}

// asksOf returns the asks of requests that a limiter may delay by patience.
func asksOf(requests []ratelimit.Request, patience int64) []ask {
	asks := make([]ask, len(requests))
	for i, q := range requests {
		asks[i] = ask{rule: q.Rule, key: q.Key, member: q.Member, cost: max(q.Cost, 1), patience: patience}
	}
	return patient(asks)
}

// patient sets how long each rule may delay a call. Rules in shadow or trigger mode do not delay it. If a rule has Distinct, no rule does.
func patient(asks []ask) []ask {
	counts := slices.ContainsFunc(asks, func(q ask) bool { return q.rule.Distinct != "" && q.cost > 0 })
	for i := range asks {
		q := &asks[i]
		if counts || q.rule.Mode != ratelimit.ModeEnforce {
			q.patience = 0
		}
		q.wait = waitOf(q.rule, q.patience)
	}
	return asks
}

// waitOf returns how long a rule may delay a waiting call. A bucket delays it no longer than the permits of its queue take to leave; in a bucket
// of one permit they leave one after the other.
func waitOf(r ratelimit.Rule, patience int64) int64 {
	switch {
	case r.Queue == 0:
		return patience
	case r.Algorithm == ratelimit.LeakyBucket || r.Burst == 1:
		return min(patience, r.Queue*roundUp(refill(r, 1)).Num().Int64())
	}
	return min(patience, roundUp(refill(r, r.Queue)).Num().Int64())
}

// reserving are the asks of a call that is decided once, so a member that a rule in another mode counts changes nothing.
func reserving(asks []ask, patience int64) []ask {
	for i := range asks {
		if q := &asks[i]; q.rule.Mode == ratelimit.ModeEnforce {
			q.patience, q.wait = patience, waitOf(q.rule, patience)
		}
	}
	return asks
}

// An answer is the answer of one rule.
type answer struct {
	earliest int64 // when the rule admits the call
	refused  bool
}

// peek returns the outcome of a call at now, without charging it.
func (m *model) peek(now int64, asks []ask) outcome {
	o, _ := m.decide(now, asks, false)
	return o
}

// decide decides a call. once says that it does not ask again.
func (m *model) decide(now int64, asks []ask, once bool) (outcome, []answer) {
	o, answers, refused := outcome{at: now}, make([]answer, len(asks)), false
	for i, q := range asks {
		if q.rule.Mode == ratelimit.ModeEnforce && q.cost > lawOf(q.rule).most() {
			return outcome{never: true}, nil
		}
		answers[i] = m.ask(now, q)
		if q.rule.Mode == ratelimit.ModeEnforce {
			o.at, refused = max(o.at, answers[i].earliest), refused || answers[i].refused
		}
	}
	if o.at > now && !refused {
		m.place(now, asks, answers, &o)
	}
	if o.again && once {
		o.again, o.unplaced = false, true
		for i, q := range asks {
			answers[i].refused = answers[i].refused || q.rule.Mode == ratelimit.ModeEnforce && answers[i].earliest > now
		}
	}
	m.violations(now, asks, answers, &o, once)
	return o, answers
}

// askForPlaces sets when a place is no longer too far ahead for each rule that refuses a call that reserves.
func askForPlaces(now int64, asks []ask, answers []answer) {
	at := now
	for i, q := range asks {
		if q.rule.Mode == ratelimit.ModeEnforce {
			at = max(at, answers[i].earliest)
		}
	}
	for i, q := range asks {
		if a := &answers[i]; a.refused && q.rule.Mode == ratelimit.ModeEnforce && q.rule.Block == 0 && a.earliest > now+q.wait {
			a.earliest = at - q.wait
		}
	}
}

func (m *model) ask(now int64, q ask) answer {
	law, block := lawOf(q.rule), m.blocks[q.identity()][0]
	switch {
	case q.cost == 0, q.rule.Mode == ratelimit.ModeTrigger:
		return answer{earliest: now}
	case q.cost > law.most(): // in shadow mode
		return answer{earliest: now, refused: true}
	}
	at := law.earliest(m.histories[q.identity()], now, now, q)
	return answer{max(at, block), at > now+q.wait || block > now}
}

// place finds the first time at which all rules admit a waiting call, and decides whether all of them keep a place for it.
func (m *model) place(now int64, asks []ask, answers []answer, o *outcome) {
	enforced := func(do func(law, history, ask, *answer)) {
		for i, q := range asks {
			if q.cost > 0 && q.rule.Mode == ratelimit.ModeEnforce {
				do(lawOf(q.rule), m.histories[q.identity()], q, &answers[i])
			}
		}
	}
	moved, refused := true, false
	for moved && !refused {
		moved = false
		enforced(func(law law, h history, q ask, a *answer) {
			if at := law.earliest(h, now, o.at, q); at > o.at {
				o.at, moved = at, true
				*a = answer{at, at > now+q.wait}
				refused = refused || a.refused
			}
		})
	}
	enforced(func(law law, h history, q ask, _ *answer) {
		o.again = o.again || !refused && !law.keeps(h, now, o.at, q)
	})
}

func (m *model) violations(now int64, asks []ask, answers []answer, o *outcome, once bool) {
	refused := false
	for i, q := range asks {
		refused = refused || answers[i].refused && q.rule.Mode == ratelimit.ModeEnforce
	}
	if refused && !o.unplaced {
		for i, q := range asks {
			if answers[i].refused && q.rule.Block > 0 && m.blocks[q.identity()][0] <= now {
				answers[i].earliest = max(answers[i].earliest, now+m.nextBlock(now, q))
			}
		}
		m.forget(now, asks, answers)
	}
	if once && !o.unplaced {
		askForPlaces(now, asks, answers)
	}
	for i, q := range asks {
		if !answers[i].refused {
			continue
		}
		v := ratelimit.Violation{Rule: q.rule.Name, Key: q.key, Limit: q.rule.Limit, RetryAfter: micros(answers[i].earliest - now)}
		if (q.rule.Block == 0 || o.unplaced) && q.cost > 1 {
			v.Remaining = remaining(lawOf(q.rule), m.histories[q.identity()], now, q)
		}
		if q.rule.Mode == ratelimit.ModeEnforce { // it may admit the call now, and not when the others do
			v.Remaining = min(v.Remaining, q.cost-1)
		}
		if countsRunning(q.rule) {
			v.RetryAfter, v.Running = 0, lawOf(q.rule).used(m.histories[q.identity()], now)
		}
		if q.rule.Mode == ratelimit.ModeShadow {
			o.shadows = append(o.shadows, v)
			continue
		}
		o.retryAfter = max(o.retryAfter, v.RetryAfter.Microseconds())
		o.violations = append(o.violations, v)
	}
}

// forget finds the rules that admit a call only because they know its member. Other rules of the same scope refuse the call until later. A rule
// that has forgotten the member by then, and is full, refuses the call, too.
func (m *model) forget(now int64, asks []ask, answers []answer) {
	for moved := true; moved; {
		moved = false
		for i, q := range asks {
			if q.rule.Distinct == "" || q.cost == 0 || q.rule.Mode != ratelimit.ModeEnforce || answers[i].refused {
				continue
			}
			others := now
			for j, other := range asks {
				if answers[j].refused && other.rule.Mode == ratelimit.ModeEnforce && other.rule.Scope == q.rule.Scope {
					others = max(others, answers[j].earliest)
				}
			}
			if at := lawOf(q.rule).earliest(m.histories[q.identity()], now, others, q); at > others {
				answers[i], moved = answer{at, true}, true
			}
		}
	}
}

// allow is peek, but also charges the call if it is allowed. It returns the number of the decision for giveBack.
func (m *model) allow(now int64, asks []ask) (outcome, int) { return m.charge(now, asks, false) }

// reserve is allow for a call that does not ask again if no place is kept.
func (m *model) reserve(now int64, asks []ask) (outcome, int) { return m.charge(now, asks, true) }

func (m *model) charge(now int64, asks []ask, once bool) (outcome, int) {
	o, answers := m.decide(now, asks, once)
	if !o.never {
		m.convert(now, asks)
	}
	switch {
	case o.never || o.again || o.unplaced:
		return o, 0
	case !o.allowed():
		m.block(now, asks, answers)
		m.undo(now, asks, answers)
		return o, 0
	}
	m.decisions++
	for i, q := range asks {
		if q.cost > 0 && !answers[i].refused {
			m.take(now, q, &o)
		}
	}
	return o, m.decisions
}

// convert records that a call asked its buckets, which count at its limits from then on.
func (m *model) convert(now int64, asks []ask) {
	for _, q := range asks {
		if _, isBucket := lawOf(q.rule).(bucketLaw); isBucket && q.cost > 0 && len(m.histories[q.identity()]) > 0 {
			m.histories[q.identity()] = append(m.histories[q.identity()], event{rule: q.rule, now: now, asked: true})
		}
	}
}

func (m *model) block(now int64, asks []ask, answers []answer) {
	for i, q := range asks {
		if id := q.identity(); answers[i].refused && q.rule.Block > 0 && m.blocks[id][0] <= now {
			length := m.nextBlock(now, q)
			m.blocks[id] = [2]int64{now + length, length}
		}
	}
}

// nextBlock returns how long a block that begins now is.
func (m *model) nextBlock(now int64, q ask) int64 {
	last, length := m.blocks[q.identity()], q.rule.Block.Microseconds()
	if now-last[0] < 24*time.Hour.Microseconds() {
		length = max(length, min(2*last[1], q.rule.BlockMax.Microseconds()))
	}
	return length
}

// undo records a call that the instance's rules admitted before the fleet's rules refused it. It leaves one trace: the time of the last charge
// of a bucket.
func (m *model) undo(now int64, asks []ask, answers []answer) {
	m.decisions++
	for i, q := range asks {
		if q.rule.Scope == ratelimit.ScopeInstance && q.rule.Mode == ratelimit.ModeEnforce && answers[i].refused {
			return
		}
	}
	for i, q := range asks {
		_, isBucket := lawOf(q.rule).(bucketLaw)
		if isBucket && q.rule.Scope == ratelimit.ScopeInstance && q.cost > 0 && !answers[i].refused {
			m.take(now, q, &outcome{at: now})
		}
	}
	m.giveBack(now, m.decisions, all)
}

// take charges a call. Rules in shadow or trigger mode count it when it is decided, not at its place.
func (m *model) take(now int64, q ask, o *outcome) {
	law, id, at := lawOf(q.rule), q.identity(), now
	h := m.histories[id]
	if q.rule.Mode == ratelimit.ModeEnforce {
		at = o.at
	}
	if isKnown(law, h, now, q.member) {
		return
	}
	if q.rule.Mode == ratelimit.ModeTrigger {
		if before := law.used(h, now); before < q.rule.Limit && before+q.cost >= q.rule.Limit {
			o.triggers = append(o.triggers, ratelimit.Trigger{Rule: q.rule.Name, Key: q.key, Limit: q.rule.Limit, Used: before + q.cost})
		}
	}
	e := event{decision: m.decisions, rule: q.rule, member: q.member, wait: q.wait, now: now, at: at, cost: q.cost, kept: q.kept}
	if bucket, ok := law.(bucketLaw); ok && q.rule.Warmup > 0 {
		e.extra, e.taken = bucket.price(h, now, q.cost)
	}
	m.histories[id] = append(h, e)
}

// giveBack refunds one decision, once. It gives back the charges of the wanted rules that still count.
func (m *model) giveBack(now int64, decision int, wanted func(ratelimit.Rule) bool) {
	for id, h := range m.histories {
		i := slices.IndexFunc(h, func(e event) bool { return e.decision == decision })
		if i < 0 || h[i].returned || !wanted(h[i].rule) {
			continue
		}
		h[i].returned = true
		back := h[i]
		back.back, back.now = true, now
		m.histories[id] = append(h, back)
	}
}

func all(ratelimit.Rule) bool { return true }

func refunds(r ratelimit.Rule) bool { return r.Refund == ratelimit.RefundError }

func (m *model) reset(asks []ask) {
	for _, q := range asks {
		delete(m.histories, q.identity())
		delete(m.blocks, q.identity())
	}
}

// remaining returns the largest cost that fits now. If a cost fits, so do all smaller costs. A bucket has at most its burst, or one permit if it
// has no burst, whatever debt is possible.
func remaining(law law, h history, now int64, q ask) int64 {
	most, earliest := law.most(), func(cost int64) int64 {
		q.cost = cost
		return law.earliest(h, now, now, q)
	}
	if bucket, ok := law.(bucketLaw); ok && most > 0 {
		most = max(1, bucket.burst())
		b := bucket.replay(h, now)
		earliest = func(cost int64) int64 {
			return max(b.cut, roundUp(new(big.Rat).Add(b.tat, refill(bucket.rule, cost-most))).Num().Int64())
		}
	}
	return int64(sort.Search(int(most), func(i int) bool { return earliest(int64(i)+1) > now }))
}

// sum returns the permits taken at or after a time and not given back, including those of waiting calls.
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
