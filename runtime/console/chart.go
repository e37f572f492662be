package console

import (
	"fmt"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// chart is a line over the last ten minutes, 120 wide and 32 high.
type chart struct {
	Title  string
	Line   string // points of a polyline
	Area   string // points of the polygon below it
	Now    float64
	Peak   float64
	Enough bool // there is something to draw
	Bad    bool // it must be 0, and was not
}

// charts draws the counts of the rules that are wanted.
func charts(slots []fleet.Slot, wanted func(fleet.RuleCounts) bool) []chart {
	all := []chart{
		drawn("Decisions", slots, func(r fleet.RuleCounts) int64 { return r.Calls }, wanted),
		drawn("Refusals", slots, func(r fleet.RuleCounts) int64 { return r.Refused }, wanted),
		drawn("Shadow refusals", slots, func(r fleet.RuleCounts) int64 { return r.Shadow }, wanted),
		drawn("Failures", slots, func(r fleet.RuleCounts) int64 { return r.Failed }, wanted),
	}
	failures := &all[len(all)-1]
	failures.Bad = failures.Peak > 0
	return all
}

// drawn draws the rates of a counter.
func drawn(title string, slots []fleet.Slot, counter func(fleet.RuleCounts) int64, wanted func(fleet.RuleCounts) bool) chart {
	c := chart{Title: title, Enough: len(slots) > 1}
	if !c.Enough {
		return c
	}
	slots = slots[:len(slots)-1] // the last slot is not over
	values := make([]float64, len(slots))
	for i, s := range slots {
		for _, r := range s.Rules {
			if wanted(r) {
				values[i] += float64(counter(r)) / fleet.SlotLength.Seconds()
			}
		}
		c.Now, c.Peak = values[i], max(c.Peak, values[i])
	}
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, "%.1f,%.1f ", float64(i)*120/float64(max(1, len(values)-1)), 31-30*v/max(c.Peak, 1e-9))
	}
	c.Line = strings.TrimSpace(points.String())
	c.Area = "0,32 " + c.Line + " 120,32"
	return c
}
