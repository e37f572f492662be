package collect

import (
	"go/types"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// self returns a type instantiated with the type parameters of its declaration.
func self(o *types.TypeName) types.Type {
	params := typeParams(o.Type())
	if params.Len() == 0 {
		return o.Type()
	}
	t, _ := types.Instantiate(nil, o.Type(), arguments(params), false) // without validation there is no error
	return t
}

// arguments returns type parameters as type arguments.
func arguments(params *types.TypeParamList) []types.Type {
	var args []types.Type
	for p := range params.TypeParams() {
		args = append(args, p)
	}
	return args
}

// typeParamNames returns the names of type parameters. Blank ones get new names that hide no declaration.
func typeParamNames(params *types.TypeParamList, declared map[string][]place) []string {
	taken := names.NewScope(slices.Collect(maps.Keys(declared))...)
	for p := range params.TypeParams() {
		taken.Reserve(p.Obj().Name())
	}
	var found []string
	for p := range params.TypeParams() {
		name := p.Obj().Name()
		if name == "_" {
			name = taken.Take("P")
		}
		found = append(found, name)
	}
	return found
}

// typeParams returns the type parameters of a named type or an alias, and nil for other types.
func typeParams(t types.Type) *types.TypeParamList {
	switch t := t.(type) {
	case *types.Named:
		return t.TypeParams()
	case *types.Alias:
		return t.TypeParams()
	}
	return nil
}
