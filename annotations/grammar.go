package annotations

import (
	"fmt"
	"strings"
)

// Grammar describes a verb and its arguments as plain text, a line each.
func Grammar(v *Verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "//ratelimit:%s stands %s.\nIt %s.\n", v.Name, v.On, v.Doc)
	if len(v.Args) > 0 {
		b.WriteString("\n")
	}
	for _, a := range v.Args {
		line := fmt.Sprintf("%-10s %-10s %s", a.Name, a.Kind, a.Doc)
		if a.Kind == EnumKind {
			line = fmt.Sprintf("%-10s %s: %s", a.Name, strings.Join(a.words(), ", "), a.Doc)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
