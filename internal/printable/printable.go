// Package printable makes a caller's text safe to show in an error, a log line or a key. It does not decide what is shown.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune reports whether c may be shown as it is.
func Rune(c rune) bool { return c != unicode.ReplacementChar && unicode.IsPrint(c) }

// Text returns s with everything that does not print escaped as in Go source. A result over limit bytes is cut, and ends in an
// ellipsis, which comes on top.
func Text(s string, limit int) string {
	if len(s) <= limit && strings.IndexFunc(s, func(c rune) bool { return !Rune(c) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		c, size := utf8.DecodeRuneInString(s)
		piece := s[:size]
		if !Rune(c) {
			piece = strconv.QuoteToASCII(piece)
			piece = piece[1 : len(piece)-1]
		}
		if b.Len()+len(piece) > limit {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
		s = s[size:]
	}
	return b.String()
}
