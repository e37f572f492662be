package wrap

import (
	"reflect"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Part escapes the value of an expression before a colon in a template, so that different lists of values always give different texts.
func Part(s string) string { return PartBefore(s, ':') }

// PartBefore is [Part] before another rune than a colon.
func PartBefore(s string, next rune) string {
	s = strings.ReplaceAll(s, `\`, `\\`)
	if next == '\\' {
		return s
	}
	return strings.ReplaceAll(s, string(next), `\`+string(next))
}

// Printable makes a caller's text safe for a message: it escapes unprintable characters as in Go source, and cuts a text of more than 128
// bytes.
func Printable(s string) string { return printable.Text(s, 128) }

// IsNil reports whether v is nil or holds a nil pointer, map, slice, func or channel.
func IsNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}
