package collect

import (
	"go/types"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// describe sets the names of the parameters and results of m, and which of them are the context and the error.
func describe(m *model.Method) {
	m.Params, m.Results = named(m.Signature.Params(), "arg"), named(m.Signature.Results(), "result")
	m.Context, m.ByMethod = expr.Context(m.Params)
	for i, r := range m.Results {
		if takesError(r.Type) {
			m.Error = i
		}
	}
}

func isPointerToContext(param expr.Param) bool {
	p, ok := types.Unalias(param.Type).(*types.Pointer)
	return ok && reach.IsNamed(p.Elem(), "context", "Context")
}

// named returns parameters or results with their names in expressions. Unnamed ones are called otherwise0, otherwise1, and so on, unless
// another one has that name.
func named(list *types.Tuple, otherwise string) []expr.Param {
	var params []expr.Param
	taken := names.NewScope()
	for v := range list.Variables() {
		taken.Reserve(v.Name())
	}
	for i := range list.Len() {
		v := list.At(i)
		name := v.Name()
		if names.IsBlank(name) {
			name = otherwise + strconv.Itoa(i)
			if taken.Has(name) {
				name = ""
			}
		}
		params = append(params, expr.Param{Name: name, Type: v.Type()})
	}
	return params
}

// takesError reports whether a result of type t can be any error. An empty interface does not count.
func takesError(t types.Type) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if _, isParam := types.Unalias(t).(*types.TypeParam); !ok || isParam {
		return false
	}
	return iface.NumMethods() > 0 && types.AssignableTo(errorType, t)
}

var errorType = types.Universe.Lookup("error").Type()
