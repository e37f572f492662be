package names

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Variables chooses names for the variables of methods, such as userGet. The names for different types differ. They depend only on
// the names of the types, as the files of a package are generated one by one, and for different systems.
type Variables struct{ stems map[string]string }

// NewVariables returns Variables for these types.
func NewVariables(types []string) Variables {
	v, taken := Variables{map[string]string{}}, NewScope()
	for _, t := range slices.Sorted(slices.Values(types)) {
		hint := strings.TrimLeft(Lower(t), "_")
		if first, _ := utf8.DecodeRuneInString(hint); !unicode.IsLetter(first) {
			hint = "limited" + hint
		}
		v.stems[t] = taken.Take(hint)
	}
	return v
}

// numbered matches a name that ends like those to which Of adds a number.
var numbered = regexp.MustCompile(`_[0-9]+$`)

// Of returns the beginning of the names for a method, or for the type itself if method is "". The type UserGet with the method Name
// and the type User with the method GetName would both give userGetName. In such a case Of adds the length of the type's part:
//
//	userGetName_4
func (v Variables) Of(typ, method string) string {
	name := v.stems[typ]
	end := len(name)
	if method != "" {
		name += Upper(method)
	}
	ambiguous := numbered.MatchString(name)
	for _, other := range v.stems {
		ambiguous = ambiguous || len(other) > end && strings.HasPrefix(name, other)
	}
	if ambiguous {
		return fmt.Sprintf("%s_%d", name, end)
	}
	return name
}
