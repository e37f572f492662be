package simulate

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// svg writes a drawing. Positions are in pixels from the top left corner. What a thing looks like is for its class to say, in a
// style sheet that knows light and dark.
type svg struct{ strings.Builder }

// point is a position.
type point struct{ x, y float64 }

// newSVG begins a drawing with a title for those who cannot see it.
func newSVG(width, height float64, title, style string) *svg {
	s := new(svg)
	s.element("<svg xmlns=%q viewBox=%q width=%q height=%q role=%q>", "http://www.w3.org/2000/svg",
		"0 0 "+number(width)+" "+number(height), number(width), number(height), "img")
	s.element("<title>%s</title>", escaped(title))
	s.element("<style>%s</style>", style)
	s.rect("back", 0, 0, width, height)
	return s
}

func (s *svg) end() []byte {
	s.element("</svg>")
	return []byte(s.String())
}

func (s *svg) element(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *svg) rect(class string, x, y, width, height float64) {
	s.element("<rect class=%q x=%q y=%q width=%q height=%q/>", class, number(x), number(y), number(width), number(height))
}

func (s *svg) line(class string, from, to point) {
	s.element("<path class=%q d=\"M%s %sL%s %s\"/>", class, number(from.x), number(from.y), number(to.x), number(to.y))
}

// text writes a line of text that begins at a point, is centred on it, or ends at it, where the class says so.
func (s *svg) text(class string, at point, text string) {
	s.element("<text class=%q x=%q y=%q>%s</text>", class, number(at.x), number(at.y), escaped(text))
}

// bars draws bars that stand at the given points, one path for all.
func (s *svg) bars(class string, width float64, feet []point, heights []float64) {
	var d strings.Builder
	for i, foot := range feet {
		if heights[i] > 0 {
			fmt.Fprintf(&d, "M%s %sh%sv%sh-%[3]sz", number(foot.x), number(foot.y), number(width), number(-heights[i]))
		}
	}
	if d.Len() > 0 {
		s.element("<path class=%q d=%q/>", class, d.String())
	}
}

// polyline joins points. Points that a straight line passes anyway are left out.
func (s *svg) polyline(class string, points []point) {
	var d strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			d.WriteByte('M')
		case i+1 < len(points) && points[i-1].y == p.y && p.y == points[i+1].y:
			continue
		default:
			d.WriteByte('L')
		}
		d.WriteString(number(p.x) + " " + number(p.y))
	}
	s.element("<path class=%q d=%q/>", class, d.String())
}

// number writes tenths of a pixel.
func number(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}
