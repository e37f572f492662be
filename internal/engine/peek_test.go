package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A peek changes nothing, whatever the algorithm and its state, and promises what the call gets, also after the clock was set back.
func TestPeek(t *testing.T) {
	minutes := NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }, true, time.UTC)
	for _, kind := range Kinds() {
		rapid.Check(t, func(r *rapid.T) {
			rule := Rule{Kind: kind, Per: 60 * second, Slices: 4, Warmup: 10 * second}
			if kind == Calendar || kind == DistinctCalendar {
				rule.Per, rule.Schedule = 0, minutes
			}
			if kind == Anchored || kind == DistinctAnchored {
				rule.Per, rule.Every = 0, Every{Days: 1, Zone: time.UTC}
			}
			s := newSubject(t, rule)
			var admitted []Call
			for range 30 {
				s.now += rapid.SampledFrom([]int64{0, 1, second, 30 * second, 70 * second, -40 * second}).Draw(r, "later")
				c := Claim{Ask: Ask{Member: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "member")}}
				c.Limit = rapid.SampledFrom([]int64{1, 3, 5}).Draw(r, "limit")
				c.Burst, c.Cost = c.Limit, rapid.Int64Range(1, c.Limit).Draw(r, "cost")
				if kind.Accepts("up-to") && kind.Accepts("wait") {
					c.Wait = rapid.SampledFrom([]int64{0, 100 * second}).Draw(r, "wait")
				}
				c.Anchor, _ = AnchorAt(time.UnixMicro(1_000_000*second + rapid.SampledFrom([]int64{1, 40 * second, 500 * second}).Draw(r, "anchor")))
				before, peeked := s.show(), c
				peeked.Rule = &s.rule
				promised := (&Call{Peek: true, Claims: []Claim{peeked}}).Decide([]*Cell{&s.cell}, s.now)
				if after := s.show(); after != before {
					r.Fatalf("%s: a peek changes %s to %s", kind, before, after)
				}
				call, v := s.ask(c)
				if v != promised {
					r.Fatalf("%s: a peek promises %+v, the call gets %+v", kind, promised, v)
				}
				if v.Admitted {
					admitted = append(admitted, call)
				}
				if len(admitted) > 0 && rapid.IntRange(0, 2).Draw(r, "gives back") == 0 {
					which := rapid.IntRange(0, len(admitted)-1).Draw(r, "which")
					s.giveBack(admitted[which])
					admitted = slices.Delete(admitted, which, which+1)
				}
			}
		})
	}
}

func (s *subject) show() string {
	x, numbers := Rare{Until: longAgo}, s.cell
	if numbers.Rare != nil {
		x, numbers.Rare = *numbers.Rare, nil
	}
	return fmt.Sprintf("%+v, %+v, %+v, %+v, %+v, %d", numbers, x.state, x.change, (*windows)(&s.cell).ahead(), s.cell.free(), x.Until)
}
