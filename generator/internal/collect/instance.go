package collect

import (
	"go/types"
	"maps"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// self returns the annotated type instantiated with its own type parameters.
func (c *methods) self() types.Type {
	if len(c.of.TypeParams) == 0 {
		return c.object.Type()
	}
	t, _ := types.Instantiate(nil, c.object.Type(), arguments(c.of.TypeParams), false) // without validation there is no error
	return t
}

// arguments returns type parameters as type arguments.
func arguments(params []*types.TypeParam) (args []types.Type) {
	for _, p := range params {
		args = append(args, p)
	}
	return args
}

// namedParams returns the type parameters of a type. New ones, whose names hide no declaration, stand for those without a name.
func namedParams(of *types.TypeName, declared map[string][]position) (found []*types.TypeParam) {
	taken := names.NewScope(slices.Collect(maps.Keys(declared))...)
	for p := range typeParams(of.Type()).TypeParams() {
		taken.Reserve(p.Obj().Name())
	}
	for p := range typeParams(of.Type()).TypeParams() {
		if p.Obj().Name() == "_" {
			name := types.NewTypeName(p.Obj().Pos(), of.Pkg(), taken.Take("P"), nil)
			p = types.NewTypeParam(name, p.Constraint())
		}
		found = append(found, p)
	}
	return found
}

// typeParams returns the type parameters of a named type or an alias, and nil for other types.
func typeParams(t types.Type) *types.TypeParamList {
	if t, ok := t.(interface{ TypeParams() *types.TypeParamList }); ok {
		return t.TypeParams()
	}
	return nil
}
