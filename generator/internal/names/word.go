package names

import (
	"go/token"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefixed returns the name of what is generated for a type if no wrap names it: "limited" and "Sender" give LimitedSender,
// "limited" and "sender" give limitedSender.
func Prefixed(word, typ string) string {
	if token.IsExported(typ) {
		word = Upper(word)
	}
	return word + Upper(typ)
}

// Upper makes a word begin with a capital.
func Upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// Lower makes a word begin like an unexported name: Owner is owner, URLStore is urlStore.
func Lower(s string) string {
	r := []rune(s)
	for i := range r {
		if !unicode.IsUpper(r[i]) || i > 0 && i+1 < len(r) && !unicode.IsUpper(r[i+1]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}

// updated is the begin of a word whose u is not that of a user: Update, Unsafe, but not Unit.
var updated = regexp.MustCompile(`^[Uu](p|n[^i])[a-z]`)

// Article returns "a" or "an", whichever people say before a name: an Order, an SMS, a URL, a Sender.
func Article(name string) string {
	first, n := utf8.DecodeRuneInString(name)
	second, _ := utf8.DecodeRuneInString(name[n:])
	vowels := "aeioAEIO"
	if unicode.IsUpper(first) && (n == len(name) || unicode.IsUpper(second)) {
		vowels = "AEFHILMNORSX" // it is spelled letter by letter
	}
	if strings.ContainsRune(vowels, first) || updated.MatchString(name) {
		return "an"
	}
	return "a"
}
