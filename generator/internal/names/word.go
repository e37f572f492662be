package names

import (
	"go/token"
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
