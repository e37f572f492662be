package faults

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the search for an order of operations, which takes milliseconds.
const checkTime = 20 * time.Second

// memory is for how long a refusal may be remembered, in microseconds: it is right if the store refused the call at some instant of
// that time.
const memory = 100_000

// ever is later than all times.
const ever = math.MaxInt64 / 4

// Operation is a call of a client, or a change of what a call was charged.
type Operation struct {
	Entry
	ID         int   // of the call
	Change     bool  // the charge of the call becomes Cost; its outcome is Admitted or Unknown
	UpTo       bool  // the call takes what there is, at most Cost
	Taken      int64 // of a call with UpTo
	Waits      bool  // the call may be admitted later than it is decided
	Until      int64 // of a call that waits: its deadline
	Remembered bool  // the call was certainly refused without asking the store
	Found      bool  // the refusal is by a block that it did not begin: the store found the block, or the refusal was remembered
	Failover   bool  // no call: another server takes over, which may not know of some charges
	Phase      int   // the calls of a phase are made after those of the phase before have returned
	More       int64 // by how much the limit of the phase is above that of the rule
}

// held is a charge in a state of the model.
type held struct {
	id, cost int64
	from, to int64 // when, on the server's clock: a single time if that is known
	maybe    bool  // it is unknown whether it was made, whether it was forgotten, or how much of it was given back
	member   string
}

// state is what a limiter of one rule and one subject may have done so far. It is not changed.
type state struct {
	now     int64  // of the last decision
	held    []held // that can still count, in order of from
	blocked int64  // until when the subject is certainly refused
	maybe   int64  // until when it may be
}

// Model is the sequential limiter of one rule and one subject that keeps to a law: it decides one operation after the other, at times
// that never go back.
type Model struct {
	Law      Law
	Distinct bool
	Block    int64 // microseconds
	Keeps    int64 // if a charge makes more permits count than this, the model does not tell which of them do; 0 is no bound
	Bucket   bool  // what is given back late may have refilled already
	Waits    bool  // some calls wait; what is charged beyond the limit, or given back, moves none of their places
}

// Linearizable compares operations with the model.
//
// A call with an unknown outcome may be charged at any time after it was sent, or never. So one state stands for all that it may have
// done, from when it was sent: its charge counts against no admission and for every refusal. This keeps the search short, as the call
// has one place in the order.
func (m Model) Linearizable(operations []Operation) porcupine.CheckResult {
	var history []porcupine.Operation
	for i, o := range operations {
		if slices.ContainsFunc(operations, o.followsFrom) {
			continue
		}
		begin, end := o.Sent, o.Received
		switch {
		case o.Remembered:
			begin -= memory
		case o.Outcome == Unknown:
			end = begin
		}
		history = append(history, porcupine.Operation{ClientId: i, Input: o, Call: begin, Return: end})
	}
	return porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			next, ok := m.step(s.(state), input.(Operation))
			return ok, m.forget(next)
		},
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return x.now == y.now && x.blocked == y.blocked && x.maybe == y.maybe && slices.Equal(x.held, y.held)
		},
	}, history, checkTime)
}

// followsFrom reports whether a remembered refusal needs no check: the store itself refused the other call, for no more permits, at a time
// from which this one can have been remembered. Such operations would only multiply the orders to try.
func (o Operation) followsFrom(other Operation) bool {
	asked := other.Outcome == Refused && !other.Remembered && !other.Waits
	return o.Remembered && asked && other.Cost <= o.Cost && other.Member == o.Member &&
		o.Sent-memory <= other.Sent && other.Received <= o.Received
}

// step returns the state after an operation, and whether the operation can have its outcome.
func (m Model) step(s state, o Operation) (state, bool) {
	switch {
	case o.Failover:
		return s.doubt(), true
	case o.Change:
		return m.change(s, o), true
	case o.Outcome == Unknown:
		if m.Block > 0 {
			s.maybe = ever
		}
		return s.with(held{int64(o.ID), o.Cost, o.Sent - clockSlack, ever, true, o.Member}), true
	case !o.Remembered && o.At < s.now && !(o.Waits && o.Outcome == Refused):
		return s, false
	case o.Outcome == Refused:
		return m.refuse(s, o)
	}
	return m.admit(s, o)
}

// doubt returns the state after a failover: each charge may be forgotten.
func (s state) doubt() state {
	s.held = slices.Clone(s.held)
	for i := range s.held {
		s.held[i].maybe = true
	}
	s.blocked, s.maybe = 0, max(s.maybe, s.blocked)
	return s
}

func (m Model) admit(s state, o Operation) (state, bool) {
	taken, maybe := o.Cost, false
	if o.UpTo {
		if taken = o.Taken; taken < o.Cost && !m.full(s, o.At, taken+1, o.Member) {
			return s, false
		}
	}
	known, perhaps := m.knows(s, o)
	if !known {
		if o.At < s.blocked || !m.fits(s, o.At, taken) && !perhaps {
			return s, false
		}
		maybe = perhaps
		s = s.with(held{int64(o.ID), taken, o.At, o.At, maybe, o.Member})
	}
	if !o.Waits {
		s.now = o.At
	}
	return s, true
}

func (m Model) refuse(s state, o Operation) (state, bool) {
	now, at := o.At, o.At
	switch {
	case o.Remembered || o.Found && now >= max(s.blocked, s.maybe): // at some instant of its time; it begins nothing
		return s, m.mayRefuse(s, o, max(s.now, o.Sent-memory)) || m.mayRefuse(s, o, max(s.now, o.Received))
	case o.Waits: // it does not tell when it was decided; it would have taken a place until its deadline
		now = max(s.now, o.Sent-clockSlack)
		at = max(now, o.Until-clockSlack)
	}
	known, _ := m.knows(s, o)
	switch {
	case now < s.blocked || o.Found:
	case known || now >= s.maybe && !m.full(s, at, o.Cost, o.Member):
		return s, false
	case m.Block > 0:
		if now >= s.maybe {
			s.blocked = now + m.Block
		}
		s.maybe = max(s.maybe, now+m.Block)
	}
	s.now = now
	return s, true
}

// mayRefuse reports whether the call may be refused at a time.
func (m Model) mayRefuse(s state, o Operation, at int64) bool {
	known, _ := m.knows(s, o)
	return at < max(s.blocked, s.maybe) || !known && m.full(s, at, o.Cost, o.Member)
}

// change makes the charge of a call what it really cost. What is added counts as of now. What is given back to a bucket may have
// refilled before. While calls have places after it, it may count until then.
func (m Model) change(s state, o Operation) state {
	i := slices.IndexFunc(s.held, func(h held) bool { return h.id == int64(o.ID) })
	if i < 0 {
		return s // the member was known, or it does not count any more
	}
	s.held = slices.Clone(s.held)
	h := &s.held[i]
	switch more := o.Cost - h.cost; {
	case m.Distinct && o.Outcome == Admitted:
		s.held = slices.Delete(s.held, i, i+1)
	case more > 0 && o.Outcome == Unknown:
		return m.keep(s.with(held{-1, more, o.Sent - clockSlack, ever, true, ""}))
	case more > 0:
		return m.keep(s.with(held{-1, more, s.now, o.Received + clockSlack, m.Waits, ""}))
	case o.Outcome == Unknown || m.Bucket || m.Waits:
		h.maybe = true
	default:
		h.cost = o.Cost
	}
	return s
}

// keep returns the state after a charge beyond the limit, of which a sliding window takes no more permits than its limit. A charge may be
// smaller than the model knows if it and all that may be as late have more permits than Keeps.
func (m Model) keep(s state) state {
	for i := range s.held {
		sum := int64(0)
		for _, h := range s.held {
			if h.to >= s.held[i].from {
				sum += h.cost
			}
		}
		s.held[i].maybe = s.held[i].maybe || m.Keeps > 0 && sum > m.Keeps
	}
	return s
}

// knows reports whether a member certainly costs nothing, and whether it perhaps does.
func (m Model) knows(s state, o Operation) (known, perhaps bool) {
	for _, h := range s.held {
		if m.Distinct && h.member == o.Member && m.Law.Most(min(h.to, o.At), o.At) < anyNumber {
			known, perhaps = known || !h.maybe, true
		}
	}
	return known, perhaps
}

// fits reports whether the charges that are certain leave room for a cost, in all spans that hold the time.
func (m Model) fits(s state, at, cost int64) bool {
	return m.spans(s, at, func(from, to int64) bool {
		sum := m.own(cost)
		for _, h := range s.held {
			if !h.maybe && from <= h.from && h.to <= to {
				sum += h.cost
			}
		}
		return sum <= m.Law.Most(from, to)
	})
}

// full reports whether the charges that are possible may leave no room for a cost, in some span that holds the time.
func (m Model) full(s state, at, cost int64, member string) bool {
	return !m.spans(s, at, func(from, to int64) bool {
		sum := m.own(cost)
		for _, h := range s.held {
			if from <= h.to && h.from <= to && (!m.Distinct || h.member != member) {
				sum += h.cost
			}
		}
		return sum <= m.Law.Least(from, to)
	})
}

// own returns what a call adds to what counts against it.
func (m Model) own(cost int64) int64 {
	if m.Law.Prepaid {
		return 0
	}
	return cost
}

// spans reports whether something holds for all spans between charges that hold a time.
func (m Model) spans(s state, at int64, holds func(from, to int64) bool) bool {
	starts, ends := []int64{at}, []int64{at}
	for _, h := range s.held {
		for _, t := range []int64{h.from, h.to} {
			if t <= at && m.Law.reaches(t, at) {
				starts = append(starts, t)
			} else if t > at && h.from == h.to && m.Law.reaches(at, t) {
				ends = append(ends, t)
			}
		}
	}
	for _, from := range starts {
		for _, to := range ends {
			if !holds(from, to) {
				return false
			}
		}
	}
	return true
}

// with returns the state with one more charge.
func (s state) with(h held) state {
	i, _ := slices.BinarySearchFunc(s.held, h, func(a, b held) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.id, b.id)) })
	s.held = slices.Insert(slices.Clone(s.held), i, h)
	return s
}

// forget returns the state without what cannot count any more.
func (m Model) forget(s state) state {
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(h held) bool { return !m.Law.reaches(h.to, s.now) })
	return s
}
