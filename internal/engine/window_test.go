package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A calendar window takes only the charges of its own time. A call of one rule gets the first window that has room. Other rules may put the places of
// calls into windows far ahead, and calls may give such places up: neither changes that.
func TestWindowsFarAheadRefuseNobodyNow(t *testing.T) {
	const minute, limit = 60 * second, 3
	every := NewSchedule(func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(time.Minute) }, true, time.UTC)
	rules := []Rule{
		{Kind: Calendar, Schedule: every},
		{Kind: Anchored, Every: Every{Days: 1, Zone: time.UTC}},
	}
	rapid.Check(t, func(t *rapid.T) {
		rule, per := &rules[0], int64(minute)
		if rapid.Bool().Draw(t, "anchored") {
			rule, per = &rules[1], day
		}
		tenant := Rule{Kind: FixedWindow, Per: per * rapid.Int64Range(2, 9).Draw(t, "windows of the other rule")}
		shared, now := NewCell(rule), int64(20_000*day)
		tenants := []Cell{NewCell(&tenant), NewCell(&tenant), NewCell(&tenant)}
		used := map[int64]int64{} // by window
		var charged []Claim
		for range 60 {
			now += rapid.SampledFrom([]int64{0, 1, per / 3, per, 3*per + 7}).Draw(t, "later")
			c := Claim{Ask: Ask{Rule: rule, Limit: limit, Cost: 1, Anchor: Anchor(now - now%day - yearOne)}}
			c.Wait = rapid.SampledFrom([]int64{0, 20 * per}).Draw(t, "wait")
			if len(charged) > 0 && rapid.IntRange(0, 3).Draw(t, "gives back") == 0 {
				i := rapid.IntRange(0, len(charged)-1).Draw(t, "which")
				back := charged[i]
				if charged = append(charged[:i:i], charged[i+1:]...); now < (back.At/per+1)*per {
					used[back.At/per]--
				}
				back.Delta = -1
				call := Call{Claims: []Claim{back}, Rollback: rapid.Bool().Draw(t, "rollback")}
				call.Adjust([]*Cell{&shared}, now)
				continue
			}
			call, cells := Call{Claims: []Claim{c}}, []*Cell{&shared}
			alone := rapid.Bool().Draw(t, "alone")
			if !alone {
				i := rapid.IntRange(0, len(tenants)-1).Draw(t, "tenant")
				call.Claims = append(call.Claims, Claim{Ask: Ask{Rule: &tenant, Limit: 1, Cost: 1, Wait: c.Wait}})
				cells = append(cells, &tenants[i])
			}
			first := now
			for used[first/per] == limit {
				first = (first/per + 1) * per
			}
			v := call.Decide(cells, now)
			if mayPass := first <= now+c.Wait; alone && (v.Admitted != mayPass || mayPass && v.At != first || !mayPass && call.Claims[0].Earliest != first) {
				t.Fatalf("at %d: admitted %t for %d, earliest %d; the first window with room has %d", now, v.Admitted, v.At, call.Claims[0].Earliest, first)
			}
			if v.Admitted {
				used[v.At/per]++
				charged = append(charged, call.Claims[0])
			}
			if n := used[v.At/per]; v.Admitted && n > limit {
				t.Fatalf("%d permits in the window of %d", n, v.At)
			}
		}
	})
}
