package emit

import (
	"go/token"
	"go/types"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// passArguments returns the statements that prepare the arguments of the wrapped call. A value that a wrapper handed out is taken back, and a
// func hands out values with limits:
//
//	limited := do
//	if do != nil {
//		limited = func(repo Repo) error {
//			return do(handOutRepo(repo, r.limits))
//		}
//	}
func (c *caller) passArguments() (stmts []string) {
	for i, param := range c.params {
		switch p := c.method.Takes[i]; {
		case p == nil:
		case asWrapper(p):
			c.params[i] = c.Take(names.Lower(p.Object.Name()))
			stmts = append(stmts, c.params[i]+" := "+c.takenBack(p, param))
		default:
			passed := &passedFunc{caller: c, scope: c.scope}
			c.passed[i] = passed.value(p, c.method.Params[i].Type, param, false)
			stmts = append(stmts, passed.before...)
		}
	}
	return stmts
}

// passedFunc writes values that pass through a wrapper, and the funcs that pass on such values.
type passedFunc struct {
	*caller
	scope  *names.Scope
	before []string // the statements before the one that has the values
}

// value returns the Go expression for a value that goes out or in:
//
//	takeBackRepo(repo)
func (f *passedFunc) value(p *model.Passage, t types.Type, value string, out bool) string {
	switch {
	case p == nil:
		return value
	case p.Limited == nil:
		return f.function(p, t.Underlying().(*types.Signature), value, out)
	case out:
		return f.handedOut(p.Limited, value)
	}
	return f.takenBack(p, value)
}

// function returns the variable with a func that calls another one, which is in the variable next, and passes values on:
//
//	limited := next
//	if next != nil {
//		limited = func(repo Repo) error {
//			return next(handOutRepo(repo, r.limits))
//		}
//	}
func (f *passedFunc) function(p *model.Passage, sig *types.Signature, next string, out bool) string {
	limited := f.marks.Take(f.scope, "limited")
	inner := &passedFunc{caller: f.caller, scope: f.scope.Inside()}
	var params []*types.Var
	var args []string
	for i := range sig.Params().Len() {
		t := sig.Params().At(i).Type()
		name := f.marks.Take(inner.scope, hintOf(p.Params[i], sig.Params().At(i).Name(), "arg"))
		params, args = append(params, types.NewVar(token.NoPos, f.pkg, name, t)), append(args, inner.value(p.Params[i], t, name, !out))
	}
	if sig.Variadic() {
		args[len(args)-1] += "..."
	}
	body := inner.results(p, sig.Results(), hugging(next, args...), out)
	head := f.imports.Type(types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), sig.Results(), sig.Variadic()))
	f.before = append(f.before, limited+" := "+next, "if "+next+" != nil {\n"+limited+" = "+head+" {\n"+body+"\n}\n}")
	return limited
}

// results returns the statements that make a call and return its results:
//
//	repo, err := open()
//	return handOutRepo(repo, r.limits), err
func (f *passedFunc) results(p *model.Passage, results *types.Tuple, call string, out bool) string {
	n := results.Len()
	switch {
	case n == 0:
		f.before = append(f.before, call)
	case len(p.Results) == 0:
		f.before = append(f.before, "return "+call)
	case n == 1 && p.Results[0].Limited != nil:
		f.before = append(f.before, "return "+f.value(p.Results[0], results.At(0).Type(), call, out))
	default:
		var variables, values []string
		for i := range n {
			variables = append(variables, f.marks.Take(f.scope, hintOf(p.Results[i], results.At(i).Name(), "result")))
		}
		f.before = append(f.before, strings.Join(variables, ", ")+" := "+call)
		for i := range n {
			values = append(values, f.value(p.Results[i], results.At(i).Type(), variables[i], out))
		}
		f.before = append(f.before, "return "+strings.Join(values, ", "))
	}
	return strings.Join(f.before, "\n")
}

// hintOf returns a name for the variable with a value, which may have a name of its own.
func hintOf(p *model.Passage, own, other string) string {
	switch {
	case !names.IsBlank(own):
		return own
	case p == nil || p.Limited == nil || p.Many:
		return other
	}
	return names.Lower(p.Object.Name())
}
