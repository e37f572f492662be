package emit

import (
	"go/types"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// zero returns an expression for the zero value of t. The words are the identifiers in it, without the names of packages. For example:
//
//	Document{}
func (p *planned) zero(t types.Type) (text string, words []string) {
	typed := func(before, behind string) (string, []string) {
		return before + p.imports.Type(t) + behind, reach.From{Package: p.pkg}.Names(t)
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		text, words = typed("*new(", ")")
		return text, append(words, "new")
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return "false", []string{"false"}
		case info&types.IsNumeric != 0:
			return "0", nil
		case info&types.IsString != 0:
			return `""`, nil
		}
	case *types.Struct, *types.Array:
		return typed("", "{}")
	}
	return "nil", []string{"nil"}
}
