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
	chain = regexp.MustCompile(`[\pL_][\pL_\p{Nd}.]*(\(.*\))?`) // as expressions in keys mostly are
	value = regexp.MustCompile("^[0-9\"'`]")                    // as an island begins that is a number or a text
)

// meantBy says what to write in place of a template of r that is the same in all calls of m and looks as if it were not; it
// returns nothing for other templates.
func meantBy(pieces []model.Piece, m *model.Method) string {
	var b strings.Builder
	islands := false
	for _, p := range pieces {
		if p.Expr != "" && (!value.MatchString(p.Expr) || constant(p.Code) == nil) {
			return ""
		}
		islands = islands || p.Expr != ""
		b.WriteString(p.Literal + p.Expr)
	}
	text := b.String()
	if text == "" {
		return ""
	}
	if whole := chain.FindString(text); strings.Trim(strings.Replace(text, whole, "", 1), "{}[]()<>$#%:&'\"` ") == "" && varies(whole, m) {
		return fmt.Sprintf("write {%s} for the value", whole)
	}
	words := word.FindAllString(text, -1)
	for i, p := range m.Params {
		named := slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, p.Name) })
		switch {
		case i == m.Context || !named:
		case varies(p.Name, m):
			return fmt.Sprintf("write {%s} for the value", p.Name)
		default:
			return fmt.Sprintf("an expression over %s stands in braces", p.Name)
		}
	}
	if islands {
		return "write the name of a parameter in the braces"
	}
	return ""
}

// varies reports whether text is an expression, fit for a template, whose value depends on the arguments of m.
func varies(text string, m *model.Method) bool {
	_, varies := isIsland(text, m)
	return varies
}
