package names

import (
	"go/token"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefixed returns the default name of a declaration that is generated for a type: "limited" and "Sender" give LimitedSender, and
// "limited" and "sender" give:
//
//	limitedSender
func Prefixed(word, typ string) string {
	if token.IsExported(typ) {
		word = Upper(word)
	}
	return word + Upper(typ)
}

// IsBlank reports whether a parameter or result of this name cannot be used.
func IsBlank(name string) bool { return name == "" || name == "_" }

// Words returns the identifiers, keywords and numbers in a text.
func Words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Upper returns s with an upper case first letter.
func Upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// Lower returns s with the beginning of an unexported name: owner for Owner, urlStore for URLStore.
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

// updated matches the beginning of a word whose u is a vowel sound: Update and Unsafe, but not User or Unit.
var updated = regexp.MustCompile(`^[Uu](p|n[^i])[a-z]`)

// Article returns "a" or "an", as people say before a name: an Order, an SMS, a URL, a Sender.
func Article(name string) string {
	first, n := utf8.DecodeRuneInString(name)
	second, _ := utf8.DecodeRuneInString(name[n:])
	vowels := "aeioAEIO"
	if unicode.IsUpper(first) && (n == len(name) || unicode.IsUpper(second)) {
		vowels = "AEFHILMNORSX" // an abbreviation is spoken letter by letter
	}
	if strings.ContainsRune(vowels, first) || updated.MatchString(name) {
		return "an"
	}
	return "a"
}
