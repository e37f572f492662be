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
func (c *caller) limitedResult(l *model.Limited, value string) string {
	limit := c.instance(l.New, l)
	switch {
	case l.Kind == model.Interface:
		return c.wrap("WithLimits") + "(" + value + ", " + c.limits + ", " + limit + ")"
	case l.Value:
		value = "&" + value
	}
	return c.wrap("PointerWithLimits") + "(" + value + ", " + c.limits + ", " + limit + ")"
}

// limitedResults returns the variables with the results of the wrapped call. Those of annotated types get limits:
//
//	wrap.WithLimits(repo, r.limits, NewLimitedRepo), err
func (c *caller) limitedResults(variables []string) []string {
	values := slices.Clone(variables)
	for i, l := range c.method.Returns {
		values[i] = c.limitedResult(l, variables[i])
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
func (c *caller) handOut(fn string, args []string) string {
	switch n := len(c.results); {
	case n == 0:
		return hugging(fn, args...)
	case len(c.method.Returns) == 0:
		return hugging("return "+fn, args...)
	case n == 1 && (!c.method.Returns[0].Value || c.method.Returns[0].Kind == model.Interface):
		return "return " + c.limitedResult(c.method.Returns[0], hugging(fn, args...))
	}
	outer := c.scope
	c.scope = outer.Inside() // the names are free again after these statements, which leave the function
	defer func() { c.scope = outer }()
	variables, assign := c.resultVariables("")
	return hugging(listed(variables, " "+assign+" "+fn), args...) + "\nreturn " + listed(c.limitedResults(variables), "")
}

// resultVariables returns the variables for the results of the wrapped call, and how to assign to them. The error goes to err if that is
// declared already:
//
//	repo, err :=
func (c *caller) resultVariables(err string) (variables []string, assign string) {
	assign = "="
	if at := c.method.Error; at >= 0 && err == "" {
		if err = c.results[at]; names.IsBlank(err) {
			err, assign = c.err, ":="
		}
	}
	for i, name := range c.results {
		switch l := c.method.Returns[i]; {
		case i == c.method.Error:
			name = err
		case !names.IsBlank(name):
		case l != nil:
			name, assign = c.Take(names.Lower(l.Object.Name())), ":="
		default:
			name, assign = c.Take("result"), ":="
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
func (c *caller) limitArguments() (stmts []string) {
	for i, param := range c.params {
		taken := c.method.Passes[i]
		if len(taken) == 0 {
			continue
		}
		sig := c.method.Params[i].Type.Underlying().(*types.Signature)
		inner := c.scope.Inside()
		var params []*types.Var
		var args []string
		for j := range sig.Params().Len() {
			hint, l := "arg", taken[j]
			if l != nil {
				hint = names.Lower(l.Object.Name())
			}
			name := c.marks.Take(inner, hint)
			params, args = append(params, types.NewVar(token.NoPos, c.pkg, name, sig.Params().At(j).Type())), append(args, name)
			if l != nil {
				args[j] = c.limitedResult(l, name)
			}
		}
		if sig.Variadic() {
			args[len(args)-1] += "..."
		}
		call := param
		if sig.Results().Len() > 0 {
			call = "return " + param
		}
		limited := c.Take("limited")
		head := c.imports.Type(types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), sig.Results(), sig.Variadic()))
		stmts = append(stmts, limited+" := "+param,
			"if "+param+" != nil {\n"+limited+" = "+head+" {\n"+hugging(call, args...)+"\n}\n}")
		c.passed[i] = limited
	}
	return stmts
}
