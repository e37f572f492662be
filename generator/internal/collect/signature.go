package collect

import (
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// describe finds out what is special about the parameters and results of m.
func describe(m *model.Method) {
	for i := range m.Signature.Params().Len() {
		v := m.Signature.Params().At(i)
		name := v.Name()
		if name == "" || name == "_" {
			name = "arg" + strconv.Itoa(i)
		}
		m.Params = append(m.Params, expr.Param{Name: name, Type: v.Type()})
	}
	for i := range m.Signature.Results().Len() {
		v := m.Signature.Results().At(i)
		name := v.Name()
		if name == "" || name == "_" {
			name = "result" + strconv.Itoa(i)
		}
		m.Results = append(m.Results, expr.Param{Name: name, Type: v.Type()})
		if takesError(v.Type()) {
			m.Error = i
		}
	}
	m.Context = contextOf(m.Signature.Params())
	if m.Context < 0 {
		m.Context = slices.IndexFunc(m.Params, func(p expr.Param) bool { return hasContext(p.Type) })
		m.ByMethod = m.Context >= 0
	}
}

// hasContext reports whether t has a method Context() context.Context, as *http.Request and gRPC's streams do.
func hasContext(t types.Type) bool {
	method := types.NewMethodSet(t).Lookup(nil, "Context")
	if method == nil {
		return false
	}
	sig := method.Type().(*types.Signature)
	return sig.Params().Len() == 0 && sig.Results().Len() == 1 && types.Unalias(sig.Results().At(0).Type()).String() == "context.Context"
}

// contextOf returns the index of the first parameter that is a context.Context or else implements it; -1 if none does.
func contextOf(params *types.Tuple) int {
	found := -1
	for i := range params.Len() {
		switch t := params.At(i).Type(); {
		case types.Unalias(t).String() == "context.Context":
			return i
		case found < 0 && implementsContext(t):
			found = i
		}
	}
	return found
}

// implementsContext reports whether t has the methods of a context. The package need not import that, so that the interface
// itself, and time.Time, may be out of reach.
func implementsContext(t types.Type) bool {
	deadline := types.NewMethodSet(t).Lookup(nil, "Deadline")
	if deadline == nil {
		return false
	}
	results := deadline.Type().(*types.Signature).Results()
	if results.Len() == 0 || types.Unalias(results.At(0).Type()).String() != "time.Time" {
		return false
	}
	method := func(name string, param types.Type, results ...types.Type) *types.Func {
		sig := types.NewSignatureType(nil, nil, nil, tuple(param), tuple(results...), false)
		return types.NewFunc(token.NoPos, nil, name, sig)
	}
	done := types.NewChan(types.RecvOnly, types.NewStruct(nil, nil))
	anything := types.Universe.Lookup("any").Type()
	return types.Implements(t, types.NewInterfaceType([]*types.Func{
		method("Deadline", nil, results.At(0).Type(), types.Typ[types.Bool]), method("Done", nil, done),
		method("Err", nil, errorType), method("Value", anything, anything),
	}, nil).Complete())
}

// tuple makes a list of parameters or results of those types that are not nil.
func tuple(ts ...types.Type) *types.Tuple {
	var vars []*types.Var
	for _, t := range ts {
		if t != nil {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", t))
		}
	}
	return types.NewTuple(vars...)
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
