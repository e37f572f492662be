package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/svg"
)

// The layout of the picture, in pixels. Two panels stand side by side.
const (
	columns    = 2
	width      = 412.0 // of a panel, with its margins
	height     = 200.0
	left       = 52.0 // margins of a panel
	top        = 34.0
	plotWidth  = 336.0
	plotHeight = 100.0
	head       = 40.0 // above all panels
	colors     = 6    // classes c0 to c5 of package svg
)

// draw draws the panels.
func (b *board) draw(answers [][]series) []byte {
	rows := (len(b.Panels) + columns - 1) / columns
	s := new(svg.Drawing)
	s.Text("title", svg.At(left, 26), b.Title+": a run of the shop")
	for i, p := range b.Panels {
		p.draw(s, float64(i%columns)*width+left, head+float64(i/columns)*height, answers[i])
	}
	return s.SVG(columns*width, head+float64(rows)*height, b.Title)
}

// draw draws a panel with its plot's left edge at x and its title below y.
func (p *panel) draw(s *svg.Drawing, x, y float64, all []series) {
	all = slices.DeleteFunc(all, func(one series) bool { return len(one.points) == 0 })
	slices.SortStableFunc(all, func(a, b series) int { return cmp.Compare(a.name, b.name) })
	most := ceiling(highest(all))
	s.Text("label", svg.At(x, y+18), p.Title)
	y += top
	for _, edge := range []struct {
		y     float64
		label string
	}{{y, p.label(most)}, {y + plotHeight, "0"}} {
		s.Line("grid", svg.At(x, edge.y), svg.At(x+plotWidth, edge.y))
		s.Text("end", svg.At(x-6, edge.y+4), edge.label)
	}
	for at := time.Duration(0); at <= length; at += third {
		s.Text("mid", svg.At(x+plotWidth*float64(at)/float64(length), y+plotHeight+15), period.Format(at))
	}
	for i, one := range all[:min(len(all), colors)] {
		one.draw(s, "left c"+strconv.Itoa(i), x, y, most)
		key := svg.At(x+float64(i%3)*plotWidth/3, y+plotHeight+32+float64(i/3)*15)
		s.Line("left c"+strconv.Itoa(i), svg.At(key.X, key.Y-4), svg.At(key.X+12, key.Y-4))
		s.Text("label", svg.At(key.X+16, key.Y), one.name)
	}
	if len(all) == 0 {
		s.Text("mid", svg.At(x+plotWidth/2, y+plotHeight/2), "none")
	}
}

// draw draws a line, with gaps where there are no values.
func (one series) draw(s *svg.Drawing, class string, x, y, most float64) {
	var line []svg.Point
	for i, p := range one.points {
		if i > 0 && p.after-one.points[i-1].after > 2*time.Second {
			s.Polyline(class, line)
			line = nil
		}
		line = append(line, svg.At(x+plotWidth*min(1, float64(p.after)/float64(length)), y+plotHeight*(1-p.value/most)))
	}
	s.Polyline(class, line)
}

func highest(all []series) float64 {
	most := 0.0
	for _, one := range all {
		for _, p := range one.points {
			most = max(most, p.value)
		}
	}
	return most
}

// ceiling returns the lowest round number that is not below f: 1, 2 or 5 with zeros.
func ceiling(f float64) float64 {
	if f <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(f)))
	for _, round := range []float64{1, 2, 5} {
		if f <= round*unit*(1+1e-9) {
			return round * unit
		}
	}
	return 10 * unit
}

// label is a value with the panel's unit.
func (p *panel) label(value float64) string {
	switch p.FieldConfig.Defaults.Unit {
	case "s":
		return period.Format(time.Duration(math.Round(value * 1e9)))
	case "percentunit":
		return fmt.Sprintf("%.0f%%", 100*value)
	case "short":
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + "/s"
}
