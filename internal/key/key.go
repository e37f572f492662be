// Package key spells the keys under which a store keeps its counts. It does not know what a rule is.
package key

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/printable"
)

const (
	maxSubject = 128
	// everybody is the subject of a rule without a key. Like cut, it is no escaped text: there, two hexadecimal digits
	// follow a percent sign.
	everybody = "%all"
	cut       = "%#"
	hashBytes = 16 // of what is cut
)

// Escape returns the form in which a caller's text stands in keys and errors. Braces, percent signs and unprintable characters
// are escaped as in a URL. A result over 128 bytes is cut and completed with a hash of the whole text. Different texts give
// different results.
func Escape(text string) string {
	if len(text) <= maxSubject && isClean(text) {
		return text
	}
	return abbreviate(escape(text), text)
}

// IsEscaped reports whether a text is one that Escape may return.
func IsEscaped(text string) bool {
	if _, ok := Unescape(text); ok {
		return true
	}
	at := strings.LastIndex(text, cut)
	if at < 0 || len(text) > maxSubject {
		return false
	}
	head, hash := text[:at], text[at+len(cut):]
	_, err := hex.DecodeString(hash)
	return err == nil && len(hash) == 2*hashBytes && hash == strings.ToLower(hash) && isEscapedHead(head)
}

// isEscapedHead reports whether a text is the head of one that Escape cut, which may have cut an escape in two.
func isEscapedHead(head string) bool {
	for i := max(0, len(head)-2); i < len(head); i++ {
		if head[i] == '%' {
			head = head[:i]
		}
	}
	_, ok := Unescape(head)
	return ok
}

// Unescape returns the text that Escape shows so. It reports false if there is none, or if it was cut.
func Unescape(shown string) (text string, ok bool) {
	text, _ = url.PathUnescape(shown) // "" of what is no escaped text
	return text, Escape(text) == shown
}

func isClean(text string) bool {
	for i := 0; i < len(text); i++ {
		if mustEscape(text[i]) {
			return false
		}
	}
	return true
}

// mustEscape is true of every byte of a text that is not plain ASCII, too: escape looks closer at those. A table takes half
// the time of comparing, for every key of every call.
func mustEscape(c byte) bool { return escaped[c] }

var escaped = func() (table [256]bool) {
	for c := range table {
		table[c] = c < ' ' || c >= 0x7f || c == '{' || c == '}' || c == '%'
	}
	return table
}()

func escape(text string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() <= maxSubject; {
		c, size := utf8.DecodeRuneInString(text[i:])
		if keep := size > 1 && printable.Rune(c); keep || !mustEscape(text[i]) {
			b.WriteString(text[i : i+size])
			i += size
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[text[i]>>4])
		b.WriteByte(digits[text[i]&15])
		i++
	}
	return b.String()
}

func abbreviate(escaped, text string) string {
	if len(escaped) <= maxSubject {
		return escaped
	}
	hash := sha256.Sum256([]byte(text))
	tail := cut + hex.EncodeToString(hash[:hashBytes])
	head := escaped[:maxSubject-len(tail)]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + tail
}

// maxMember is how many bytes a member is kept in at most: a Redis set of such members takes the least memory.
const maxMember = 14

// Member returns how a member is kept: canonical, or if that is too long as a hash of 104 bits, behind a byte that no
// canonical text has. It has no zero bytes.
func Member(text string) string {
	if s := Escape(text); len(s) <= maxMember {
		return s
	}
	hash := sha256.Sum256([]byte(text))
	for i, b := range hash {
		hash[i] = max(b, 1)
	}
	return "\x01" + string(hash[:maxMember-1])
}

// Subject returns the subject of a caller's text: "%all" of the empty text, which stands for everybody, else as [Escape].
func Subject(text string) string {
	if text == "" {
		return everybody
	}
	return Escape(text)
}

// Shown returns a subject as errors show it: "" for everybody.
func Shown(subject string) string {
	if subject == everybody {
		return ""
	}
	return subject
}
