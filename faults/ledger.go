package faults

import (
	"cmp"
	"fmt"
	"slices"
)

// charge is permits that were taken, or may have been.
type charge struct {
	cost     int64
	from, to int64 // when, on the server's clock: a single time if that is known
}

// Audit compares the entries of one rule and one key with a law. It returns the first thing that is wrong: an answer that was given
// before it was asked for or after it was received, a span that holds too much, or a call that was refused without reason. A call with
// an unknown outcome took nothing where that would break the law, and all that it asked for, up to a second after it failed, where
// that would keep it.
func Audit(law Law, entries []Entry) error {
	var known, all []charge
	if law.Per > 0 {
		return law.auditRunning(entries)
	}
	for _, e := range entries {
		if e.Outcome == Unknown {
			all = append(all, charge{e.Cost, e.Sent, e.Received + lateness})
			continue
		}
		if e.At < e.Sent-clockSlack || e.Outcome == Refused && e.At > e.Received+clockSlack {
			return fmt.Errorf("decided at %d, but sent at %d and answered at %d: %+v", e.At, e.Sent, e.Received, e)
		}
		if e.Outcome == Admitted {
			known = append(known, charge{e.Cost, e.At, e.At})
		}
	}
	all = append(all, known...)
	sortCharges(known)
	sortCharges(all)
	if err := law.checkMost(known); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Outcome == Refused && !law.justifies(all, e) {
			return fmt.Errorf("refused without reason: %+v", e)
		}
	}
	return nil
}

// auditRunning is Audit for calls that run.
func (l Law) auditRunning(entries []Entry) error {
	var known, possible []charge
	for _, e := range entries {
		switch {
		case e.Outcome == Unknown:
			possible = append(possible, charge{e.Cost, e.Sent, e.Received + lateness + l.Per})
		case e.Outcome == Admitted && e.Back == 0:
			known, possible = append(known, charge{e.Cost, e.At, e.Over}), append(possible, charge{e.Cost, e.At, e.At + l.Per})
		case e.Outcome == Admitted:
			known, possible = append(known, charge{e.Cost, e.At, e.Over}), append(possible, charge{e.Cost, e.At, e.Back})
		}
	}
	for _, e := range entries {
		switch most := l.Most(e.At, e.At); {
		case e.Outcome == Admitted && heldAt(known, e.At, -clockSlack) > most:
			return fmt.Errorf("%d permits at the same time; at most %d may be: %+v", heldAt(known, e.At, -clockSlack), most, e)
		case e.Outcome == Refused && heldAt(possible, e.At, clockSlack)+e.Cost <= l.Least(e.At, e.At):
			return fmt.Errorf("refused without reason: %+v", e)
		}
	}
	return nil
}

// heldAt returns how many permits are held at a time. Each charge ends later by so many microseconds.
func heldAt(charges []charge, at, later int64) (sum int64) {
	for _, c := range charges {
		if c.from <= at && at < c.to+later {
			sum += c.cost
		}
	}
	return sum
}

// sortCharges sorts by time, and at one time by cost: what is prepaid comes last.
func sortCharges(charges []charge) {
	slices.SortFunc(charges, func(a, b charge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.cost, b.cost)) })
}

// clockSlack is how far the clock of this machine and a server's reading of it may be apart, in microseconds.
const clockSlack = 2

// lateness is how long after a call failed a server may still charge it, in microseconds. No test holds a server up for longer.
const lateness = 1_000_000

// checkMost returns an error if a span holds too much.
func (l Law) checkMost(charges []charge) error {
	for i := range charges {
		sum := int64(0)
		for j := i; j >= 0 && l.reaches(charges[j].from, charges[i].from); j-- {
			if sum += charges[j].cost; l.Prepaid && j == i {
				sum = 0
			}
			if from, to := charges[j].from, charges[i].from; sum > l.Most(from, to) {
				return fmt.Errorf("%d permits from %d to %d, in %d µs; at most %d may be", sum, from, to, to-from, l.Most(from, to))
			}
		}
	}
	return nil
}

// justifies reports whether a span up to the refused call would hold too much with it.
func (l Law) justifies(charges []charge, e Entry) bool {
	sum := e.Cost
	if l.Prepaid {
		sum = 0
	}
	end, _ := slices.BinarySearchFunc(charges, e.At+1, func(c charge, at int64) int { return cmp.Compare(c.from, at) })
	for _, c := range charges[:end] { // with an unknown outcome: they may be as late as that
		if c.to > e.At {
			sum += c.cost
		}
	}
	if sum > l.Least(e.At, e.At) {
		return true
	}
	for i := end - 1; i >= 0 && l.reaches(charges[i].from, e.At); i-- {
		if charges[i].to > e.At {
			continue
		}
		if sum += charges[i].cost; sum > l.Least(charges[i].from, e.At) {
			return true
		}
	}
	return false
}

func (l Law) reaches(from, to int64) bool { return l.Span == 0 || to-from <= l.Span }
