package emit

import (
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// forward makes the wrapped call and returns its results. A guard's method, which calls nothing, returns nil. For example:
//
//	return s.next.Send(ctx, phone)
func (f *function) forward() string {
	if f.guards {
		return "return nil"
	}
	return f.handOut(f.target, f.arguments(f.method.Signature.Variadic()))
}

// arguments returns all parameters as arguments:
//
//	ctx, in, opts...
func (f *function) arguments(spread bool) []string {
	args := slices.Clone(f.params)
	for i, limited := range f.passed {
		args[i] = limited
	}
	if spread {
		args[len(args)-1] += "..."
	}
	return args
}

// failure returns the statements that return an error of the limiter, or call the fallback if the method has no error result:
//
//	return nil, err
func (w *writer) failure(err string) string {
	if w.guards {
		return "return " + w.guarded(err)
	}
	if w.method.Error < 0 {
		return w.instead(err)
	}
	values := make([]string, len(w.results))
	for i, r := range w.method.Results {
		if values[i] = w.zero(r.Type); w.changed(i) {
			values[i] = "nil"
		}
	}
	values[w.method.Error] = err
	return "return " + listed(values, "")
}

// instead returns the statements that call the fallback and return its results:
//
//	return sendLater(ctx, phone)
func (w *writer) instead(err string) string {
	fallback := w.method.Fallback
	args := w.arguments(fallback.Spread)
	if fallback.TakesErr {
		args = append(args, err)
	}
	if len(w.results) == 0 {
		return hugging(w.fallback(fallback), args...) + "\nreturn"
	}
	return w.handOut(w.fallback(fallback), args)
}

// fallback returns the Go expression for the function to call:
//
//	queue.Push
func (w *writer) fallback(f *model.Fallback) string {
	args := ""
	if f.Generic {
		args = w.generic
	}
	switch {
	case f.Of == model.OfNext:
		return w.next + "." + f.Name
	case f.Of == model.OfType:
		return "new(" + f.Qualifier + ")." + f.Name
	case f.Import != nil:
		return w.Import(f.Import) + "." + f.Name + args
	case f.Of == model.OfValue:
		return f.Qualifier + "." + f.Name
	}
	return f.Name + args
}

// zero returns an expression for the zero value of t. For example:
//
//	Document{}
func (p *planned) zero(t types.Type) string {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "*new(" + p.imports.Type(t) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return "false"
		case info&types.IsNumeric != 0:
			return "0"
		case info&types.IsString != 0:
			return `""`
		}
	case *types.Struct, *types.Array:
		return p.imports.Type(t) + "{}"
	}
	return "nil"
}
