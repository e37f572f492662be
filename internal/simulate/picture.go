package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/internal/svg"
)

// The layout of a picture, in pixels. The results stand below each other. Each has its rules, a panel of calls, and a panel of budgets.
const (
	width      = 800.0
	left       = 64.0 // the left edge of the panels
	right      = 776.0
	headHeight = 64.0
	lineHeight = 18.0 // the height of a rule
	callHeight = 110.0
	leftHeight = 64.0
	between    = 26.0 // the space between the two panels, with the title of the second
	axisHeight = 40.0 // with the space below the axis
)

// shownRules is the largest number of rules of a result that a picture shows.
const shownRules = 6

// Draw returns an SVG of the results of one load. All panels of calls have the same scale. The title may be empty.
func Draw(title string, results ...*Result) []byte {
	load := results[0].Load
	most := int64(1)
	for _, r := range results {
		most = max(most, r.Timeline.most())
	}
	if title == "" {
		title = "Simulation of " + load.Text
	}
	s := new(svg.Drawing)
	s.Text("title", svg.At(left, 28), printable.Text(title, 90))
	s.Text("label", svg.At(left, 48), fmt.Sprintf("%s: %s, %s", load, period.Count(int64(len(load.Calls)), "call"), period.Count(int64(len(load.Keys)), "key")))
	y := headHeight
	for _, r := range results {
		y = r.draw(s, y, ceiling(most))
	}
	return s.SVG(width, y, printable.Text(title, 200))
}

// most returns the number of calls in the busiest step.
func (t *Timeline) most() int64 {
	var most int64
	for i := range t.Admitted {
		most = max(most, t.Admitted[i]+t.Refused[i])
	}
	return most
}

// length returns the length of the load, rounded up to whole steps.
func (t *Timeline) length() time.Duration {
	return time.Duration(t.Step) * time.Duration(len(t.Admitted))
}

// ceiling returns the lowest round number that is at least n. A round number is one digit followed by zeros.
func ceiling(n int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for round := unit; round < 10*unit; round += unit {
			if round >= n {
				return round
			}
		}
	}
}

// draw draws one result with its top at y, and returns its bottom.
func (r *Result) draw(s *svg.Drawing, y float64, most int64) (bottom float64) {
	for i, rule := range r.Rules {
		y += lineHeight
		if i == shownRules {
			s.Text("rule", svg.At(left+26, y-5), fmt.Sprintf("and %d more", len(r.Rules)-shownRules))
			break
		}
		s.Line(color(i), svg.At(left, y-9), svg.At(left+18, y-9))
		s.Text("rule", svg.At(left+26, y-5), printable.Text(rule.Rule.Text, 90))
	}
	r.drawLegend(s, y+18)
	y += 28
	r.drawCalls(s, y, most)
	y += callHeight + between
	r.drawLeft(s, y)
	y += leftHeight
	drawTimes(s, y, r.Timeline.length())
	return y + axisHeight
}

func color(rule int) string { return "left c" + strconv.Itoa(rule) }

func (r *Result) drawLegend(s *svg.Drawing, y float64) {
	s.Text("label", svg.At(left, y), "calls offered in "+r.Timeline.Step.String())
	s.Rect("admitted", 420, y-9, 10, 10)
	s.Text("label", svg.At(435, y), fmt.Sprintf("%d admitted", r.Admitted-r.Waited))
	if r.Waited > 0 {
		s.Rect("waited", 300, y-9, 10, 10)
		s.Text("label", svg.At(315, y), fmt.Sprintf("%d waited", r.Waited))
	}
	s.Rect("refused", 560, y-9, 10, 10)
	s.Text("label", svg.At(575, y), fmt.Sprintf("%d refused%s", r.Refused, share(r.Refused, r.Admitted+r.Refused)))
}

// drawCalls draws a bar for the calls of each step: those that were admitted at once, above them those that waited, and above these
// those that were refused.
func (r *Result) drawCalls(s *svg.Drawing, y float64, most int64) {
	t := &r.Timeline
	drawGrid(s, y, callHeight, strconv.FormatInt(most, 10))
	step := (right - left) / float64(len(t.Admitted))
	bar := max(step-1, step*0.8)
	feet := make([]svg.Point, len(t.Admitted))
	for i := range feet {
		feet[i] = svg.At(left+step*float64(i), y+callHeight)
	}
	for _, part := range []struct {
		class string
		of    func(i int) int64
	}{
		{"admitted", func(i int) int64 { return t.Admitted[i] - t.Waited[i] }},
		{"waited", func(i int) int64 { return t.Waited[i] }},
		{"refused", func(i int) int64 { return t.Refused[i] }},
	} {
		heights := make([]float64, len(feet))
		for i := range feet {
			heights[i] = callHeight * float64(part.of(i)) / float64(most)
		}
		s.Bars(part.class, bar, feet, heights)
		for i := range feet {
			feet[i].Y -= heights[i]
		}
	}
}

// drawLeft draws the remaining budget of each rule, relative to its capacity. It draws the first rule last, above the others.
func (r *Result) drawLeft(s *svg.Drawing, y float64) {
	t := &r.Timeline
	title, top := "budget left", "full"
	if slices.ContainsFunc(r.Rules, func(rule RuleResult) bool { return rule.Rule.Key != "" }) {
		title += " of " + printable.Text(t.Key, 40)
	}
	if len(r.Rules) == 1 {
		top = strconv.FormatInt(r.Rules[0].Rule.capacity(), 10)
	}
	s.Text("label", svg.At(left, y-8), title)
	drawGrid(s, y, leftHeight, top)
	for i := min(len(r.Rules), shownRules) - 1; i >= 0; i-- {
		full := float64(max(1, r.Rules[i].Rule.capacity()))
		points := make([]svg.Point, len(t.Left[i]))
		for n, permits := range t.Left[i] {
			x := float64(n) * float64(t.LeftStep) / float64(t.length())
			points[n] = svg.At(left+(right-left)*x, y+leftHeight*(1-float64(permits)/full))
		}
		s.Polyline(color(i), points)
	}
}

// drawGrid draws the lines at the bottom and the top of a panel, with the labels 0 and top.
func drawGrid(s *svg.Drawing, y, height float64, top string) {
	s.Line("grid", svg.At(left, y), svg.At(right, y))
	s.Line("grid", svg.At(left, y+height), svg.At(right, y+height))
	s.Text("end", svg.At(left-8, y+4), top)
	s.Text("end", svg.At(left-8, y+height+4), "0")
}

// drawTimes labels the time axis with the time since the start.
func drawTimes(s *svg.Drawing, y float64, length time.Duration) {
	step := stepFor(length, 10)
	for at := time.Duration(0); at <= length; at += step {
		x := left + (right-left)*float64(at)/float64(length)
		s.Line("grid", svg.At(x, y), svg.At(x, y+5))
		label := "0"
		if at > 0 {
			label = period.Format(at)
		}
		s.Text("mid", svg.At(x, y+18), label)
	}
}
