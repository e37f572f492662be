// Package printable escapes a caller's text, so that an error, a log line or a key can show it safely.
package printable

import (
	"errors"
	"slices"
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

// maxLine bounds a Line, in bytes.
const maxLine = 1024 - len("…")

// Line makes a text, in which may be what a caller sent, one line of at most 1 kB.
func Line(s string) string { return Text(s, maxLine) }

// errorList is several errors in one. Its text is one line, which may be cut before the last errors.
type errorList struct{ errs []error }

// Join is errors.Join, with a text of one line. A single error stays as it is.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return &errorList{errs}
	}
}

func (l *errorList) Error() string {
	return Line(strings.ReplaceAll(errors.Join(l.errs...).Error(), "\n", "; "))
}

// Unwrap returns the errors.
func (l *errorList) Unwrap() []error { return l.errs }
