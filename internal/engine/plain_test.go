package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A decision lets no cell without anything rare expire sooner, and leaves its size as it is, also if the limit changes or the clock is set back. The
// store in memory does not look at such cells after a decision.
func TestPlainCell(t *testing.T) {
	minutes := NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }, true, time.UTC)
	for _, kind := range []Kind{FixedWindow, Calendar, Anchored, TokenBucket, LeakyBucket, Prepaid} {
		rapid.Check(t, func(r *rapid.T) {
			rule := Rule{Kind: kind, Per: 60 * second, Block: rapid.SampledFrom([]int64{0, second, 100 * second}).Draw(r, "block")}
			switch kind {
			case Calendar:
				rule.Per, rule.Schedule = 0, minutes
			case Anchored:
				rule.Per, rule.Every = 0, Every{Days: 1, Zone: time.UTC}
			}
			s := newSubject(t, rule)
			for range 30 {
				s.now += rapid.SampledFrom([]int64{0, 1, second, 30 * second, 70 * second, -40 * second}).Draw(r, "later")
				c := Claim{Ask: Ask{Rule: &s.rule, Limit: rapid.SampledFrom([]int64{1, 3, 7, 1000}).Draw(r, "limit")}}
				c.Burst, c.Cost = c.Limit, rapid.Int64Range(1, c.Limit).Draw(r, "cost")
				c.Anchor, _ = AnchorAt(time.UnixMicro(1_000_000*second + rapid.SampledFrom([]int64{0, 40 * second, 500 * second}).Draw(r, "anchor")))
				c.Wait = rapid.SampledFrom([]int64{0, 100 * second}).Draw(r, "wait")
				call := Call{Claims: []Claim{c}, UpTo: rapid.Bool().Draw(r, "up to"), Report: rapid.Bool().Draw(r, "report")}
				if rapid.IntRange(0, 5).Draw(r, "lease") == 0 && c.Wait == 0 {
					call.Lease, call.Ahead, call.UpTo = 5*second, 10, false
				}
				before, plain := s.cell, s.cell.Rare == nil
				call.Decide([]*Cell{&s.cell}, s.now)
				if plain && (s.cell.Expiry(&s.rule) < before.Expiry(&s.rule) || s.cell.Size() != before.Size()) {
					r.Fatalf("%s: a decision makes %+v, which expires at %d, %+v, which expires at %d; the sizes are %d and %d", kind,
						before, before.Expiry(&s.rule), s.cell, s.cell.Expiry(&s.rule), before.Size(), s.cell.Size())
				}
				if rapid.IntRange(0, 3).Draw(r, "forget") == 0 && s.cell.Expiry(&s.rule) <= s.now {
					s.cell = NewCell(&s.rule)
				}
			}
		})
	}
}
