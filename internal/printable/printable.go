// Package printable escapes a caller's text, so that an error, a log line or a key can show it safely.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune reports whether c can be shown without an escape.
func Rune(c rune) bool { return c != unicode.ReplacementChar && unicode.IsPrint(c) }

// Text returns s with unprintable characters escaped as in Go source. A result over limit bytes is cut to at most limit bytes, and an
// ellipsis is appended.
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
