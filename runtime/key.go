package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const (
	maxSubject = 128
	// everybody is the subject of a rule without a key. Like cut, it is no escaped text: there, two hexadecimal digits
	// follow a percent sign.
	everybody = "%all"
	cut       = "%#"
)

// canonical returns the subject that stands in keys and errors for a caller's text: braces, percent signs, and what is not
// printable are escaped as in a URL; what is longer than 128 bytes then is cut and ends in a hash of the whole. Different
// texts give different subjects.
func canonical(text string) string {
	if len(text) <= maxSubject && isClean(text) {
		return text
	}
	return abbreviate(escape(text), text)
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
		if keep := size > 1 && isPrintable(c); keep || !mustEscape(text[i]) {
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
	tail := cut + hex.EncodeToString(hash[:16])
	head := escaped[:maxSubject-len(tail)]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + tail
}

// maxMember is how many bytes a member is kept in at most: a Redis set of such members takes the least memory.
const maxMember = 14

// member returns how a member is kept: canonical, or if that is too long as a hash of 104 bits, behind a byte that no
// canonical text has. It has no zero bytes.
func member(text string) string {
	if s := canonical(text); len(s) <= maxMember {
		return s
	}
	hash := sha256.Sum256([]byte(text))
	for i, b := range hash {
		hash[i] = max(b, 1)
	}
	return "\x01" + string(hash[:maxMember-1])
}

// subject is whom a key names.
func subject(key string) string {
	if key == "" {
		return everybody
	}
	return canonical(key)
}

// shown is the subject as errors have it.
func shown(subject string) string {
	if subject == everybody {
		return ""
	}
	return subject
}
