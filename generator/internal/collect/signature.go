package collect

import (
	"go/types"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// describe finds out what is special about the parameters and results of m.
func describe(m *model.Method) {
	m.Params, m.Results = named(m.Signature.Params(), "arg"), named(m.Signature.Results(), "result")
	m.Context, m.ByMethod = expr.Context(m.Params)
	for i, r := range m.Results {
		if takesError(r.Type) {
			m.Error = i
		}
	}
}

// named returns parameters or results as expressions name them.
func named(list *types.Tuple, otherwise string) []expr.Param {
	var params []expr.Param
	for i := range list.Len() {
		v := list.At(i)
		name := v.Name()
		if name == "" || name == "_" {
			name = otherwise + strconv.Itoa(i)
		}
		params = append(params, expr.Param{Name: name, Type: v.Type()})
	}
	return params
}

// takesError reports whether every error can be returned as a t, and t is meant for that: any is not.
func takesError(t types.Type) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if _, isParam := types.Unalias(t).(*types.TypeParam); !ok || isParam {
		return false
	}
	return iface.NumMethods() > 0 && types.AssignableTo(errorType, t)
}

var errorType = types.Universe.Lookup("error").Type()
