package faults

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the search for an order of operations.
const checkTime = 5 * time.Second

// memory is for how long a refusal may be remembered, in microseconds: it is right if the store refused the call at some instant of
// that time.
const memory = 100_000

// Operation is a call of a client, or a change of what a call was charged.
type Operation struct {
	Entry
	ID         int   // of the call
	Change     bool  // the charge of the call becomes Cost; its outcome is Admitted or Unknown
	UpTo       bool  // the call takes what there is, at most Cost
	Taken      int64 // of a call with UpTo
	Waits      bool  // the call may be admitted later than it is decided
	Remembered bool  // the call was refused without asking the store
}

// held is a charge in a state of the model.
type held struct {
	id, cost int64
	from, to int64 // when, on the server's clock: a single time if that is known
	maybe    bool  // it is unknown whether it was made, or how much of it was given back
	member   string
}

// state is what a limiter of one rule and one subject may have done so far. It is not changed.
type state struct {
	now     int64 // of the last decision
	held    []held
	blocked int64 // until when the subject is certainly refused
	maybe   int64 // until when it may be
}

// Model is the sequential limiter of one rule and one subject that keeps to a law: it decides one operation after the other, at times
// that never go back.
type Model struct {
	Law      Law
	Distinct bool
	Block    int64 // microseconds
	Bucket   bool  // what is given back late may have refilled already
	Waits    bool  // some calls wait; what is charged beyond the limit moves none of their places
}

// Linearizable compares operations with the model.
func (m Model) Linearizable(operations []Operation) porcupine.CheckResult {
	var history []porcupine.Operation
	for i, o := range operations {
		begin, end := o.Sent, o.Received
		if o.Remembered {
			begin -= memory
		}
		if o.Outcome == Unknown {
			end += lateness
		}
		history = append(history, porcupine.Operation{ClientId: i, Input: o, Call: begin, Return: end})
	}
	return porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			next, ok := m.step(s.(state), input.(Operation))
			return ok, next
		},
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return x.now == y.now && x.blocked == y.blocked && x.maybe == y.maybe && slices.Equal(x.held, y.held)
		},
	}, history, checkTime)
}

// step returns the state after an operation, and whether the operation can have its outcome.
func (m Model) step(s state, o Operation) (state, bool) {
	switch {
	case o.Change:
		return m.change(s, o), true
	case o.Outcome == Unknown:
		s.maybe = max(s.maybe, o.Received+lateness+m.Block)
		return s.with(held{int64(o.ID), o.Cost, s.now, o.Received + lateness, true, o.Member}), true
	case !o.Remembered && o.At < s.now && !(o.Waits && o.Outcome == Refused):
		return s, false
	case o.Outcome == Refused:
		return m.refuse(s, o)
	}
	return m.admit(s, o)
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
		s = m.forget(s).with(held{int64(o.ID), taken, o.At, o.At, maybe, o.Member})
	}
	if !o.Waits {
		s.now = o.At
	}
	return s, true
}

func (m Model) refuse(s state, o Operation) (state, bool) {
	at := o.At
	switch {
	case o.Waits: // a wait that is refused does not tell when
		at = max(s.now, o.Sent)
	case o.Remembered:
		at = s.now
	}
	known, _ := m.knows(s, o)
	switch {
	case at < s.blocked:
	case known || at >= s.maybe && !m.full(s, at, o.Cost, o.Member):
		return s, false
	case o.Remembered: // it begins nothing
		return s, true
	case m.Block > 0:
		if at >= s.maybe {
			s.blocked = at + m.Block
		}
		s.maybe = max(s.maybe, at+m.Block)
	}
	s.now = at
	return s, true
}

// change makes the charge of a call what it really cost. What is added counts as of now. What is given back to a bucket may have
// refilled before.
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
	case more > 0:
		s.held = append(s.held, held{-1, more, s.now, o.Received, o.Outcome == Unknown || m.Waits, ""})
	case o.Outcome == Unknown || m.Bucket:
		h.maybe = true
	default:
		h.cost = o.Cost
	}
	return s
}

// knows reports whether a member certainly costs nothing, and whether it perhaps does.
func (m Model) knows(s state, o Operation) (known, perhaps bool) {
	for _, h := range s.held {
		if m.Distinct && h.member == o.Member && m.Law.Most(h.to, o.At) < anyNumber {
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

func (s state) with(h held) state {
	s.held = append(slices.Clip(s.held), h)
	return s
}

// forget returns the state without what cannot count any more.
func (m Model) forget(s state) state {
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(h held) bool { return !m.Law.reaches(h.to, s.now) })
	return s
}
