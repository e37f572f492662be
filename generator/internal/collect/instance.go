package collect

import "go/types"

// self is the type as its own methods see it, but with the names that its declaration gives to type parameters.
func self(o *types.TypeName) types.Type {
	params := typeParams(o.Type())
	if params.Len() == 0 {
		return o.Type()
	}
	t, err := types.Instantiate(nil, o.Type(), arguments(params), false)
	if err != nil {
		return o.Type()
	}
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
