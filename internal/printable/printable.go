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

// Text returns s with everything that does not print escaped as in Go source. Of s, at most limit bytes are shown, and an
// ellipsis if that is not all.
func Text(s string, limit int) string {
	end := ""
	if len(s) > limit {
		n := limit
		for n > limit-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s, end = s[:n], "…"
	}
	if strings.IndexFunc(s, func(c rune) bool { return !Rune(c) }) >= 0 {
		s = strconv.Quote(s)
		s = s[1 : len(s)-1]
	}
	return s + end
}
