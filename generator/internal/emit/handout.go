package emit

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// limitedResult returns the Go expression for a result of the wrapped call with the limits of its type:
//
//	wrap.WithLimits(repo, r.limits, NewLimitedRepo)
func (f *function) limitedResult(l *model.Limited, value string) string {
	limit := f.instance(l.New, l)
	switch {
	case l.Kind == model.Interface:
		return f.wrap("WithLimits") + "(" + value + ", " + f.limits + ", " + limit + ")"
	case l.Value:
		value = "&" + value
	}
	return f.wrap("PointerWithLimits") + "(" + value + ", " + f.limits + ", " + limit + ")"
}

// limitedResults returns the variables with the results of the wrapped call. Those of annotated types get limits:
//
//	wrap.WithLimits(repo, r.limits, NewLimitedRepo), err
func (f *function) limitedResults(variables []string) []string {
	values := slices.Clone(variables)
	for i, l := range f.method.Returns {
		values[i] = f.limitedResult(l, variables[i])
	}
	return values
}

// changed reports whether the wrapper's method returns the wrapper of a struct instead of the struct.
func (f *function) changed(result int) bool {
	l := f.method.Returns[result]
	return l != nil && l.Kind == model.Concrete
}

// resultType returns the text of the type of a result:
//
//	*LimitedRepo
func (f *function) resultType(i int) string {
	if !f.changed(i) {
		return f.imports.Type(f.method.Results[i].Type)
	}
	l := f.method.Returns[i]
	return "*" + f.instance(l.Name, l)
}

// instance returns a generated name with the type arguments of l:
//
//	LimitedRepo[string]
func (f *function) instance(name string, l *model.Limited) string {
	var args []string
	for _, t := range l.Args {
		args = append(args, f.imports.Type(t))
	}
	if args == nil {
		return name
	}
	return name + "[" + strings.Join(args, ", ") + "]"
}

// handOut returns the statements that return the results of a call:
//
//	repo, err := r.next.WithTx(tx)
//	return wrap.WithLimits(repo, r.limits, NewLimitedRepo), err
func (f *function) handOut(fn string, args []string) string {
	switch n := len(f.results); {
	case n == 0:
		return hugging(fn, args...)
	case len(f.method.Returns) == 0:
		return hugging("return "+fn, args...)
	case n == 1 && (!f.method.Returns[0].Value || f.method.Returns[0].Kind == model.Interface):
		return "return " + f.limitedResult(f.method.Returns[0], hugging(fn, args...))
	}
	outer := f.Scope
	f.Scope = outer.Inside() // the names are free again after these statements, which leave the function
	defer func() { f.Scope = outer }()
	variables, assign := f.resultVariables("")
	return hugging(listed(variables, " "+assign+" "+fn), args...) + "\nreturn " + listed(f.limitedResults(variables), "")
}

// resultVariables returns the variables for the results of the wrapped call, and how to assign to them. The error goes to err if that is
// declared already:
//
//	repo, err :=
func (f *function) resultVariables(err string) (variables []string, assign string) {
	assign = "="
	if at := f.method.Error; at >= 0 && err == "" {
		if err = f.results[at]; names.IsBlank(err) {
			err, assign = f.errorName(), ":="
		}
	}
	for i, name := range f.results {
		switch l := f.method.Returns[i]; {
		case i == f.method.Error:
			name = err
		case !names.IsBlank(name):
		case l != nil:
			name, assign = f.Take(names.Lower(l.Object.Name())), ":="
		default:
			name, assign = f.Take("result"), ":="
		}
		variables = append(variables, name)
	}
	return variables, assign
}

// limitArguments returns the statements that put limits on the arguments of funcs that are passed to the method:
//
//	limited := do
//	if do != nil {
//		limited = func(repo Repo) error {
//			return do(wrap.WithLimits(repo, r.limits, NewLimitedRepo))
//		}
//	}
func (f *function) limitArguments() (stmts []string) {
	for i, param := range f.params {
		taken := f.method.Passes[i]
		if len(taken) == 0 {
			continue
		}
		sig := f.method.Params[i].Type.Underlying().(*types.Signature)
		inner := f.Inside(f.params...)
		var params []*types.Var
		var args []string
		for j := range sig.Params().Len() {
			hint, l := "arg", taken[j]
			if l != nil {
				hint = names.Lower(l.Object.Name())
			}
			name := inner.Take(hint)
			params, args = append(params, types.NewVar(token.NoPos, f.pkg, name, sig.Params().At(j).Type())), append(args, name)
			if l != nil {
				args[j] = f.limitedResult(l, name)
			}
		}
		if sig.Variadic() {
			args[len(args)-1] += "..."
		}
		call := param
		if sig.Results().Len() > 0 {
			call = "return " + param
		}
		limited := f.Take("limited")
		head := f.imports.Type(types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), sig.Results(), sig.Variadic()))
		stmts = append(stmts, limited+" := "+param,
			"if "+param+" != nil {\n"+limited+" = "+head+" {\n"+hugging(call, args...)+"\n}\n}")
		f.passed[i] = limited
	}
	return stmts
}
