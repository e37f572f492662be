package wrap

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Part escapes the value of an expression before a rune in a template, so that different lists of values always give different texts:
// Part("a:b", ':') is "a\\:b".
func Part(s string, next rune) string {
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

// MaxText is the largest size of a text that an expression takes apart or makes, in bytes.
const MaxText = 64 << 10

// tooLarge returns the error of a value of more than MaxText bytes, such as a string.
func tooLarge(kind string) error { return fmt.Errorf("found a %s of over %d bytes", kind, MaxText) }

// Replace returns text with the first n old replaced by new, or all if n is negative: Replace("a-b-c", "-", ".", 1) is "a.b-c". It is an error if
// text or the result has more than [MaxText] bytes.
func Replace(text, old, new string, n int) (string, error) {
	size := int64(len(text))
	if size <= MaxText {
		found := strings.Count(text, old)
		if n >= 0 {
			found = min(found, n)
		}
		size += int64(found) * int64(len(new)-len(old))
	}
	if size > MaxText {
		return "", tooLarge("string")
	}
	return strings.Replace(text, old, new, n), nil
}

// Join returns the texts with a separator between them: Join([]string{"a", "b"}, "-") is "a-b". It is an error if the result has more than
// [MaxText] bytes.
func Join(texts []string, separator string) (string, error) {
	size := int64(-len(separator))
	for _, text := range texts {
		if size += int64(len(separator)) + int64(len(text)); size > MaxText {
			return "", tooLarge("string")
		}
	}
	return strings.Join(texts, separator), nil
}

// Repeat returns a text of count copies: Repeat("ab", 2) is "abab". It is an error if count is negative, or if the result has more than
// [MaxText] bytes.
func Repeat(text string, count int) (string, error) {
	switch {
	case count < 0:
		return "", fmt.Errorf("found a count of %d; expected 0 or more", count)
	case text != "" && count > MaxText/len(text):
		return "", tooLarge("string")
	}
	return strings.Repeat(text, count), nil
}

// ToBase64 returns text in base64, with padding: ToBase64("ab") is "YWI=".
func ToBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// FromBase64 returns the text that is in base64, with padding: FromBase64("YWI=") is "ab". It is an error if the text is not in base64.
func FromBase64(text string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	return string(decoded), err
}
