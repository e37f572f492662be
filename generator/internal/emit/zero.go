package emit

import (
	"go/types"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// zero is an expression for the zero value of t.
func (p *planned) zero(t types.Type) string {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "*new(" + p.imports.Type(t) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return "false"
		case info&types.IsNumeric != 0:
			return "0"
		case info&types.IsString != 0:
			return `""`
		}
	case *types.Struct, *types.Array:
		return p.imports.Type(t) + "{}"
	}
	return "nil"
}

// zeroWords are the identifiers in the zero value of t, but for nil and packages.
func (p *planned) zeroWords(t types.Type) []string {
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsBoolean != 0 {
		return []string{"false"}
	}
	if !needsText(t) {
		return nil
	}
	words := reach.From{Package: p.pkg}.Names(t)
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		words = append(words, "new")
	}
	return words
}

// needsText reports whether the zero value of t is written with t's text.
func needsText(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return true
	}
	switch t.Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	}
	return false
}
