package names

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Variables begin the names of variables that belong to the methods of types, such that those of different types differ. They
// depend on the names of the types alone: files are generated one by one, and for different systems, and stand in one package.
type Variables struct{ stems map[string]string }

// NewVariables is for these types.
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

// numbered is a name that ends as one that says where its parts meet.
var numbered = regexp.MustCompile(`_[0-9]+$`)

// Of returns the beginning for a method, or, if that is "", for the type itself. UserGet and Name would give what User and
// GetName give: where the method runs into the name of a longer type, a number says where it begins.
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
