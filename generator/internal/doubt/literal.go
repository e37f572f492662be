package doubt

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// literalKeys warns of keys that name a parameter without braces, such as key=phone: they are the same for every call, so that they
// have no use. It warns of a rule of the type only if its key looks like that in all methods.
func (a *analysis) literalKeys(w *model.Wrapper) {
	instead := map[token.Pos]string{} // what to write in the rule; "" if the key is right in one of the methods
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
				a.found.Warn(r.At("key"), "key: the text %q is the same for every call; %s", r.Key.Value, instead[r.Pos])
			}
		}
	}
}

var (
	word  = regexp.MustCompile(`[\pL_][\pL_\p{Nd}]*`)
	chain = regexp.MustCompile(`[\pL_][\pL_\p{Nd}.]*(\(.*\))?`) // most expressions in keys look like this

	// unvaried matches the beginning of a number or a string.
	unvaried = regexp.MustCompile("^[0-9\"'`]")
)

// meantBy returns advice about a template that is the same in all calls of m but was probably meant to differ. It returns "" for
// other templates.
func meantBy(pieces []model.Piece, m *model.Method) string {
	var b strings.Builder
	islands := false
	for _, p := range pieces {
		if p.Expr != "" && (!unvaried.MatchString(p.Expr) || constant(p.Code) == nil) {
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
			return fmt.Sprintf("write an expression over %s in braces", p.Name)
		}
	}
	if islands {
		return "write the name of a parameter in the braces"
	}
	return ""
}

// varies reports whether text is a valid expression in a template of m, and its value depends on the call.
func varies(text string, m *model.Method) bool {
	_, varies := isIsland(text, m)
	return varies
}
