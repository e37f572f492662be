package annotations

import (
	"go/token"
	"unicode"
	"unicode/utf8"
)

// Prefixed returns the name of what is generated for a type if no wrap names it: "limited" and "Sender" give LimitedSender,
// "limited" and "sender" give limitedSender.
func Prefixed(word, typ string) string {
	if token.IsExported(typ) {
		word = upper(word)
	}
	return word + upper(typ)
}

func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
