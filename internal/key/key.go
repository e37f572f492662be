// Package key builds the keys under which a store keeps its counts. It does not know what a rule is.
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
	// everybody is the subject of a rule without a key, and cut stands before the hash of a text that was cut. Neither can occur in
	// escaped text, where two hexadecimal digits follow each percent sign.
	everybody = "%all"
	cut       = "%#"
	hashBytes = 16 // the length of this hash
)

// Escape returns a caller's text in the form that keys and errors use. Braces, percent signs and unprintable characters are
// escaped as in a URL. A result over 128 bytes is cut, and ends in a hash of the whole text. Different texts give different
// results.
func Escape(text string) string {
	if len(text) <= maxSubject && isClean(text) {
		return text
	}
	return abbreviate(escape(text), text)
}

// IsEscaped reports whether Escape may have returned text.
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

// isEscapedHead reports whether head may be the beginning of an escaped text that Escape has cut, perhaps inside an escape.
func isEscapedHead(head string) bool {
	for i := max(0, len(head)-2); i < len(head); i++ {
		if head[i] == '%' {
			head = head[:i]
		}
	}
	_, ok := Unescape(head)
	return ok
}

// Unescape returns the text for which Escape returns shown. If there is none, or if the text was cut, ok is false.
func Unescape(shown string) (text string, ok bool) {
	text, _ = url.PathUnescape(shown) // "" if shown is not escaped text
	return text, Escape(text) == shown
}

func isClean(text string) bool {
	for i := 0; i < len(text); i++ {
		if escaped[text[i]] {
			return false
		}
	}
	return true
}

// escaped says which bytes may have to be escaped. These are also all that are not ASCII, which escape checks again as characters. A table takes
// half the time of comparisons, which matters for every key of every call.
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
		if keep := size > 1 && printable.Rune(c); keep || !escaped[text[i]] {
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

// maxMember is the largest length of a stored member in bytes. Redis sets of such members take the least memory.
const maxMember = 14

// Member returns the form in which a member is stored: the result of [Escape], or, if that is too long, a hash of 104 bits after a
// byte that no escaped text has. It has no zero bytes.
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

// Subject returns the subject for a caller's text: "%all" for the empty text, which stands for everybody, and otherwise the result of
// [Escape].
func Subject(text string) string {
	if text == "" {
		return everybody
	}
	return Escape(text)
}

// IsSubject reports whether Subject may have returned text.
func IsSubject(text string) bool { return text == everybody || text != "" && IsEscaped(text) }

// Shown returns a subject as errors show it. It is "" for everybody.
func Shown(subject string) string {
	if subject == everybody {
		return ""
	}
	return subject
}
