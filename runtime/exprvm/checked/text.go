package checked

import (
	"fmt"
	"strings"
)

// MaxText is the largest size of a text that an expression takes apart or makes, in bytes.
const MaxText = 64 << 10

// TooLarge returns the error of a value of more than MaxText bytes, such as a string.
func TooLarge(kind string) error { return fmt.Errorf("found a %s of over %d bytes", kind, MaxText) }

// Replace returns text with each old replaced by new. It is an error if text or the result is too large.
func Replace(text, old, new string) (string, error) {
	n := int64(len(text))
	if n <= MaxText {
		n += int64(strings.Count(text, old)) * int64(len(new)-len(old))
	}
	if n > MaxText {
		return "", TooLarge("string")
	}
	return strings.ReplaceAll(text, old, new), nil
}
