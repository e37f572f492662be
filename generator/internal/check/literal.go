package check

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// literalKeys warns of keys that name a parameter and do not hold its value, such as key=phone: they are the same for every
// call. A rule of a type must look so in all of its methods. A constant key does nothing that leaving it out does not do.
func (a *analysis) literalKeys(w *model.Wrapper) {
	instead := map[token.Pos]string{} // of the key; "" where it is right in one method
	for _, m := range w.Methods {
		for _, r := range m.Rules {
			meant := meantBy(r.Subject, m)
			if first, seen := instead[r.Pos]; seen && meant != "" {
				meant = first
			}
			instead[r.Pos] = meant
		}
	}
	for _, m := range w.Methods {
		for _, r := range m.Rules {
			if instead[r.Pos] != "" {
				a.literal[r.Pos] = true
				a.found.Warn(argument(r, "key"), "key: the text %q is the same for every call; %s", r.Key.Value, instead[r.Pos])
			}
		}
	}
}

var (
	word  = regexp.MustCompile(`[\pL_][\pL_\p{Nd}]*`)
	chain = regexp.MustCompile(`^[\pL_][\pL_\p{Nd}.]*(\(.*\))?$`) // as expressions in keys mostly are
)

// meantBy says what to write in place of a template that is the same in all calls of m and names a parameter; it returns nothing
// for other templates.
func meantBy(pieces []model.Piece, m *model.Method) string {
	text, ok := same(pieces)
	if !ok {
		return ""
	}
	words := word.FindAllString(text, -1)
	for i, p := range m.Params {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, p.Name) }) {
			continue
		}
		for _, island := range []string{text, p.Name} {
			if chain.MatchString(island) && isIsland(island, m) {
				return fmt.Sprintf("write {%s} for the value", island)
			}
		}
		if i != m.Context {
			return fmt.Sprintf("an expression over %s stands in braces", p.Name)
		}
	}
	return ""
}
