// Package svg writes the drawings of simulations and dashboards as SVG. It does not read SVG.
package svg

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// Drawing collects the elements of an SVG. Positions are in pixels from the top left corner. The class of an element determines its
// look, by a style sheet with light and dark colors.
type Drawing struct{ text strings.Builder }

// style has the classes of all drawings. The classes c0 to c5 are for lines of different colors.
const style = `
text{font:12px ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
.label,.end,.mid{fill:#59636e}
.title{font-size:16px;font-weight:600;fill:#1f2328}
.rule{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}
.end{text-anchor:end}
.mid{text-anchor:middle}
.back{fill:#ffffff}
.grid{stroke:#d8dee4;fill:none}
.admitted{fill:#2f81d7}
.waited{fill:#9ec5f0}
.refused{fill:#e8590c}
.left{fill:none;stroke-width:1.6;stroke-linejoin:round}
.c0{stroke:#1a7f37}.c1{stroke:#8250df}.c2{stroke:#9a6700}.c3{stroke:#0b7285}.c4{stroke:#bf3989}.c5{stroke:#57606a}
@media (prefers-color-scheme:dark){
.label,.end,.mid{fill:#9198a1}
.title,.rule{fill:#f0f6fc}
.back{fill:#0d1117}
.grid{stroke:#30363d}
.admitted{fill:#4493f8}
.waited{fill:#1f4f86}
.refused{fill:#ff8c42}
.c0{stroke:#3fb950}.c1{stroke:#b392f0}.c2{stroke:#e3b341}.c3{stroke:#56d4dd}.c4{stroke:#f778ba}.c5{stroke:#b1bac4}
}
`

// Point is a position.
type Point struct{ X, Y float64 }

// At returns a position.
func At(x, y float64) Point { return Point{x, y} }

// SVG returns the drawing as an SVG file. The title is for screen readers.
func (s *Drawing) SVG(width, height float64, title string) []byte {
	var head Drawing
	head.element("<svg xmlns=%q viewBox=%q width=%q height=%q role=%q>", "http://www.w3.org/2000/svg",
		"0 0 "+number(width)+" "+number(height), number(width), number(height), "img")
	head.element("<title>%s</title>", escaped(title))
	head.element("<style>%s</style>", style)
	head.Rect("back", 0, 0, width, height)
	return []byte(head.text.String() + s.text.String() + "</svg>\n")
}

func (s *Drawing) element(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }

// Rect draws a rectangle.
func (s *Drawing) Rect(class string, x, y, width, height float64) {
	s.element("<rect class=%q x=%q y=%q width=%q height=%q/>", class, number(x), number(y), number(width), number(height))
}

// Line draws a straight line.
func (s *Drawing) Line(class string, from, to Point) {
	s.element("<path class=%q d=\"M%s %sL%s %s\"/>", class, number(from.X), number(from.Y), number(to.X), number(to.Y))
}

// Text draws a line of text. The class says whether it begins at the point, is centred on it, or ends at it.
func (s *Drawing) Text(class string, at Point, text string) {
	s.element("<text class=%q x=%q y=%q>%s</text>", class, number(at.X), number(at.Y), escaped(text))
}

// Bars draws bars that stand at the given points, as one path.
func (s *Drawing) Bars(class string, width float64, feet []Point, heights []float64) {
	var d strings.Builder
	for i, foot := range feet {
		if heights[i] > 0 {
			fmt.Fprintf(&d, "M%s %sh%sv%sh-%[3]sz", number(foot.X), number(foot.Y), number(width), number(-heights[i]))
		}
	}
	if d.Len() > 0 {
		s.element("<path class=%q d=%q/>", class, d.String())
	}
}

// Polyline draws lines between points. It leaves out points that lie on a straight line between their neighbours.
func (s *Drawing) Polyline(class string, points []Point) {
	var d strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			d.WriteByte('M')
		case i+1 < len(points) && points[i-1].Y == p.Y && p.Y == points[i+1].Y:
			continue
		default:
			d.WriteByte('L')
		}
		d.WriteString(number(p.X) + " " + number(p.Y))
	}
	s.element("<path class=%q d=%q/>", class, d.String())
}

// number returns f rounded to tenths of a pixel.
func number(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no errors
	return b.String()
}
