package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// maxText bounds how many bytes of a text from the store are shown.
const maxText = 1000

// output is where a command prints, and how.
type output struct {
	json           bool
	stdout, stderr io.Writer
}

// print prints v as JSON, or lines of cells. The first line is the heading.
func (out *output) print(v any, lines ...[]string) error {
	if out.json {
		return out.printJSON(v)
	}
	_, err := io.WriteString(out.stdout, columns(lines, 0))
	return err
}

// printTable prints rows as JSON, or as lines of cells under a heading, or none if there are no rows. Notes are lines below.
func printTable[T any](out *output, rows []T, none, heading string, cells func(*T) []string, notes ...[]string) error {
	lines := [][]string{strings.Split(heading, ", ")}
	if len(rows) == 0 {
		lines = [][]string{{none}}
	}
	for i := range rows {
		lines = append(lines, cells(&rows[i]))
	}
	return out.print(append([]T{}, rows...), append(lines, notes...)...)
}

func (out *output) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "\t")
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // never fails: all values have a JSON form
	_, err := out.stdout.Write(escaped(b.Bytes()))
	return err
}

// columns returns lines of cells as text. All cells of a column but the last cells of lines have the same width. Cells are escaped. Unless most
// is 0, lines are cut to that width; cells of the first column, which may be keys, are cut before other cells.
func columns(lines [][]string, most int) string {
	var widths []int
	for _, cells := range lines {
		for i, cell := range cells {
			if cells[i] = shown(cell); cell == "" {
				cells[i] = "-"
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(cells)-1 {
				widths[i] = max(widths[i], width(cells[i]))
			}
		}
	}
	first := firstWidth(lines, widths, most)
	var b strings.Builder
	for _, cells := range lines {
		line := ""
		for i, cell := range cells {
			last := i == len(cells)-1
			if i == 0 && !last {
				cell = cutTo(cell, first)
				widths[0] = first
			}
			line += cell
			if !last {
				line += strings.Repeat(" ", widths[i]-width(cell)+gap)
			}
		}
		b.WriteString(cutTo(line, most) + "\n")
	}
	return b.String()
}

const (
	gap        = 2  // spaces between columns
	leastFirst = 12 // to what width the first column is cut
)

// firstWidth returns the width of the first column with which the longest line fits into a width, if one does.
func firstWidth(lines [][]string, widths []int, most int) int {
	if len(widths) == 0 || most == 0 {
		return append(widths, 0)[0]
	}
	longest := 0
	for _, cells := range lines {
		n := 0
		for i, cell := range cells {
			if i == len(cells)-1 {
				n += width(cell)
			} else {
				n += widths[i] + gap
			}
		}
		if len(cells) > 1 {
			longest = max(longest, n)
		}
	}
	return max(min(widths[0], leastFirst), widths[0]-max(0, longest-most))
}

// cutTo cuts a line to a width, unless it is 0.
func cutTo(line string, most int) string {
	if most == 0 || width(line) <= most {
		return line
	}
	n := 1 // of the ellipsis
	for i, c := range line {
		if n += runeWidth(c); n > most {
			return line[:i] + "…"
		}
	}
	return line
}

// width returns how many columns of a terminal a text takes.
func width(text string) (n int) {
	for _, c := range text {
		n += runeWidth(c)
	}
	return n
}

// wide are the characters that take two columns.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func runeWidth(c rune) int {
	switch {
	case c < utf8.RuneSelf:
		return 1
	case unicode.In(c, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, c):
		return 2
	}
	return 1
}

// shown returns a text from the store in the form in which it is printed.
func shown(text string) string { return printable.Text(text, maxText) }

// escaped returns JSON with unprintable characters written as \u....
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, c := range string(text) {
		switch {
		case c == '\n' || c == '\t' || printable.Rune(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.Bytes()
}
