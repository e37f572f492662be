package collect

import (
	"go/types"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// self is the type as its own methods see it, but with the names that its declaration gives to type parameters.
func self(o *types.TypeName) types.Type {
	params := typeParams(o.Type())
	if params.Len() == 0 {
		return o.Type()
	}
	t, _ := types.Instantiate(nil, o.Type(), arguments(params), false) // which checks nothing, so that there is no error
	return t
}

// arguments are type parameters as the arguments of an instance.
func arguments(params *types.TypeParamList) []types.Type {
	var args []types.Type
	for p := range params.TypeParams() {
		args = append(args, p)
	}
	return args
}

// typeParamNames names type parameters, blank ones too, such that they hide nothing.
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

// typeParams returns those that a type is declared with; nil for a type without a name.
func typeParams(t types.Type) *types.TypeParamList {
	switch t := t.(type) {
	case *types.Named:
		return t.TypeParams()
	case *types.Alias:
		return t.TypeParams()
	}
	return nil
}
