package emit

import (
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// forward makes the wrapped call and returns its results.
func (f *function) forward() string {
	if f.method.Signature.Results().Len() == 0 {
		return f.callNext()
	}
	return "return " + f.callNext()
}

// callNext makes the wrapped call.
func (f *function) callNext() string {
	return f.target + "(" + f.arguments(f.method.Signature.Variadic()) + ")"
}

// arguments returns all parameters as arguments.
func (f *function) arguments(spread bool) string {
	args := strings.Join(f.params, ", ")
	if spread {
		args += "..."
	}
	return args
}

// failure returns the statements that return an error, or call the fallback if the method has no error result.
func (w *writer) failure(err string) string {
	if w.method.Error < 0 {
		return w.instead(err)
	}
	values := make([]string, w.method.Signature.Results().Len())
	for i := range values {
		values[i], _ = w.zero(w.method.Signature.Results().At(i).Type(), w.variables...)
	}
	values[w.method.Error] = err
	return "return " + strings.Join(values, ", ")
}

// instead returns the statements that call the fallback and return its results.
func (w *writer) instead(err string) string {
	fallback := w.method.Fallback
	args := w.arguments(fallback.Spread)
	if fallback.TakesErr {
		args = strings.TrimPrefix(args+", "+err, ", ")
	}
	call := w.fallback(fallback) + "(" + args + ")"
	if w.method.Signature.Results().Len() == 0 {
		return call + "\nreturn"
	}
	return "return " + call
}

// fallback returns the Go expression for the function to call.
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
