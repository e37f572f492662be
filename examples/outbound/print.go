package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/svg"
)

// settled is how many windows pass before the programs know what the service allows: a minute, or half of the run.
func (e *example) settled() int { return min(int(time.Minute/e.per), e.windows/2) }

// print prints what the services saw in each window, and in all windows after the first ones.
func (e *example) print(out io.Writer, careful, naive *far) {
	fmt.Fprintf(out, "The far side serves %d requests every %s.\n\n", e.limit, e.per)
	fmt.Fprintf(out, "%8s  %-22s  %s\n", "", "with Transport", "naive")
	fmt.Fprintf(out, "%8s  %6s %6s %8s  %6s %6s %8s\n", "second", "served", "429", "used", "served", "429", "used")
	var last []int
	for window := range e.windows {
		begin := time.Duration(window) * e.per
		fmt.Fprintf(out, "%8.0f  %s  %s\n", begin.Seconds(), e.seen(careful, window), e.seen(naive, window))
		if window >= e.settled() {
			last = append(last, window)
		}
	}
	fmt.Fprintf(out, "%8s  %s  %s\n", fmt.Sprintf("from %.0f", (time.Duration(e.settled())*e.per).Seconds()),
		e.seen(careful, last...), e.seen(naive, last...))
}

// seen describes what a service saw in some windows.
func (e *example) seen(by *far, windows ...int) string {
	by.mu.Lock()
	defer by.mu.Unlock()
	sum := by.total(windows...)
	return fmt.Sprintf("%6d %6d %6.1f %%", sum.served, sum.refused, 100*float64(sum.served)/float64(e.limit*len(windows)))
}

// draw draws what the services saw, the limited programs above the naive ones.
func (e *example) draw(careful, naive *far) []byte {
	const width, left, height = 760, 48, 110
	var d svg.Drawing
	most := 1
	for _, side := range []*far{careful, naive} {
		for _, p := range side.seen {
			most = max(most, p.served+p.refused)
		}
	}
	for row, side := range []*far{careful, naive} {
		foot := float64(60 + height + row*(height+70))
		d.Text("title", svg.At(left, foot-height-18), []string{"Three programs with httplimit.Transport", "Three naive programs, which sleep for Retry-After"}[row])
		step := float64(width-left-12) / float64(e.windows*parts)
		var feet, tops []svg.Point
		var served, refused []float64
		for i := range min(len(side.seen), e.windows*parts) {
			p, x := side.seen[i], left+float64(i)*step
			tall := float64(p.served) / float64(most) * height
			feet, served = append(feet, svg.At(x, foot)), append(served, tall)
			tops, refused = append(tops, svg.At(x, foot-tall)), append(refused, float64(p.refused)/float64(most)*height)
		}
		d.Bars("admitted", step*0.8, feet, served)
		d.Bars("refused", step*0.8, tops, refused)
		d.Line("grid", svg.At(left, foot), svg.At(width-12, foot))
		d.Text("end", svg.At(left-6, foot-height+8), fmt.Sprint(most))
		d.Text("end", svg.At(left-6, foot), "0")
		for window := 0; window <= e.windows; window += 3 {
			d.Text("mid", svg.At(left+float64(window*parts)*step, foot+18), fmt.Sprint(time.Duration(window)*e.per))
		}
	}
	bottom := float64(60 + 2*height + 70 + 44)
	d.Text("label", svg.At(left, bottom), fmt.Sprintf(
		"requests that the far side saw in each %s: served in blue, 429 in orange. It serves %d every %s.", e.per/parts, e.limit, e.per))
	return d.SVG(width, bottom+16, "What a far side saw of programs with a limit, and of naive programs")
}
