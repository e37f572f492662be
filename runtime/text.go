package runtime

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Part escapes a text that is followed by ':' and more of its key, so that two lists of texts never give one key. Generated
// code calls it.
func Part(s string) string {
	if !strings.ContainsAny(s, `:\`) {
		return s
	}
	return partEscaper.Replace(s)
}

var partEscaper = strings.NewReplacer(`:`, `\:`, `\`, `\\`)

const maxPrintable = 128

// Printable returns a caller's text fit for a message: line breaks and what else does not print are escaped as in Go source,
// and what is longer than 128 bytes is cut. Generated code calls it.
func Printable(s string) string {
	end := ""
	if len(s) > maxPrintable {
		n := maxPrintable
		for n > maxPrintable-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s, end = s[:n], "…"
	}
	if strings.IndexFunc(s, func(c rune) bool { return !isPrintable(c) }) >= 0 {
		s = strconv.Quote(s)
		s = s[1 : len(s)-1]
	}
	return s + end
}

func isPrintable(c rune) bool { return c != unicode.ReplacementChar && unicode.IsPrint(c) }

// IsNil reports whether v holds nothing, or a pointer or the like that is nil, which a comparison with nil does not see.
// Generated code calls it before it calls a method of an interface.
func IsNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}
