package collect

import (
	"cmp"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// answer is the fallback of most handlers, and answerPath is the path of its package.
const (
	answer     = "httplimit.Answer"
	answerPath = "github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// fallback returns the fallback that a directive names. It reports an error and returns nil if that cannot be called instead of m.
func (c *methods) fallback(m *model.Method, d annotations.Directive) *model.Fallback {
	f := &model.Fallback{Directive: d, Func: d.Args[0].Value}
	o := c.fallbackObject(f)
	if o == nil {
		return nil
	}
	sig, ok := o.Type().Underlying().(*types.Signature)
	if _, isType := o.(*types.TypeName); isType || !ok {
		c.found.Add(f.Func.Pos, "%s is not a function", f.Func.Value)
		return nil
	}
	if _, f.MayBeNil = o.(*types.Var); f.MayBeNil && f.Of == model.OfType {
		c.found.Add(f.Func.Pos, "%s is a field, which is nil in a new value; expected a method", f.Func.Value)
		return nil
	}
	if sig.TypeParams().Len() > 0 {
		if sig = c.ofTypeParams(sig); sig == nil {
			c.found.Add(f.Func.Pos, "%s is generic; expected the type parameters of %s, or none", f.Func.Value, c.object.Name())
			return nil
		}
		f.Generic = true
	}
	if !c.valid(sig, c.spec) {
		return nil
	}
	if f.Of == model.OfNext && f.Name == m.Name {
		c.found.Add(f.Func.Pos, "%s is the method itself without its limits, so nothing would be limited; expected another method", f.Func.Value)
		return nil
	}
	if !replaces(f, m.Signature, sig) {
		c.found.Add(f.Func.Pos, "%s is a %s; expected a %s, with or without a last parameter of type error", f.Func.Value, c.text(sig), c.text(m.Signature))
		return nil
	}
	return f
}

// replaces reports whether fn takes the arguments of a method and returns its results. It sets what f says about the parameters.
func replaces(f *model.Fallback, method, fn *types.Signature) bool {
	params, n := fn.Params(), method.Params().Len()
	f.TakesErr = params.Len() == n+1 && types.Identical(params.At(n).Type(), errorType)
	f.Spread = fn.Variadic()
	if f.TakesErr {
		params = types.NewTuple(slices.Collect(params.Variables())[:n]...)
	}
	return assignable(method.Params(), params) && assignable(fn.Results(), method.Results())
}

func assignable(from, to *types.Tuple) bool {
	if from.Len() != to.Len() {
		return false
	}
	for i := range from.Len() {
		if !types.AssignableTo(from.At(i).Type(), to.At(i).Type()) {
			return false
		}
	}
	return true
}

// ofTypeParams instantiates a generic function with the type parameters of the annotated type, or returns nil.
func (c *methods) ofTypeParams(sig *types.Signature) *types.Signature {
	params := c.of.TypeParams
	if len(params) != sig.TypeParams().Len() {
		return nil
	}
	t, err := types.Instantiate(nil, sig, arguments(params), true)
	if err != nil {
		return nil
	}
	return t.(*types.Signature)
}

func (c *methods) text(t types.Type) string {
	return types.TypeString(t, types.RelativeTo(c.pkg.Types))
}

// fallbackObject returns the object that a fallback names, or nil after an error. It records in f what the name before the dot is: an imported
// package, a variable, a type, or the annotated type, which stands for the wrapped value.
func (c *methods) fallbackObject(f *model.Fallback) types.Object {
	scope, dotted := c.pkg.Types.Scope(), false
	if f.Qualifier, f.Name, dotted = strings.Cut(f.Func.Value, "."); !dotted {
		f.Qualifier, f.Name = "", f.Qualifier
		for _, p := range c.pkg.ImportedAs(f.Func.Pos, ".") {
			if o := p.Scope().Lookup(f.Name); o != nil && o.Exported() {
				f.Import = p
				return o
			}
		}
		return c.ofScope(f, scope, "unknown function")
	}
	imported := c.pkg.ImportedAs(f.Func.Pos, f.Qualifier)
	if len(imported) > 1 {
		c.found.Add(f.Func.Pos, "%s", names.OfSeveral(imported))
		return nil
	}
	if len(imported) > 0 {
		f.Import = imported[0]
	}
	of := scope.Lookup(f.Qualifier)
	_, isVar := of.(*types.Var)
	_, isType := of.(*types.TypeName)
	switch {
	case f.Import != nil:
		return c.ofScope(f, f.Import.Scope(), "package "+f.Import.Name()+" has no function")
	case f.Qualifier == "", of == c.object:
		return c.member(f, model.OfNext, c.self())
	case isVar:
		return c.member(f, model.OfValue, of.Type())
	case !isType:
		near := slices.DeleteFunc(scope.Names(), func(name string) bool {
			switch scope.Lookup(name).(type) {
			case *types.TypeName, *types.Var:
				return false
			}
			return true
		})
		cure := cmp.Or(annotations.Suggest(f.Qualifier, near), "; if it is a package, import it as _")
		if f.Func.Value == answer {
			cure = "; import " + strconv.Quote(answerPath) + ", as _ if only directives use it"
		}
		c.found.Add(f.Func.Pos, "unknown type, variable or package %s%s", f.Qualifier, cure)
	case types.IsInterface(of.Type()):
		c.found.Add(f.Func.Pos, "%s is an interface, so there is no new value to call; expected a concrete type", f.Qualifier)
	case typeParams(of.Type()).Len() > 0:
		c.found.Add(f.Func.Pos, "%s is generic; its methods cannot be a fallback", f.Qualifier)
	default:
		return c.member(f, model.OfType, of.Type())
	}
	return nil
}

// ofScope finds a function in the scope of a package.
func (c *methods) ofScope(f *model.Fallback, scope *types.Scope, unknown string) types.Object {
	isHidden := func(o types.Object) bool { return f.Import != nil && !o.Exported() }
	if o := scope.Lookup(f.Name); o != nil && !isHidden(o) {
		return o
	}
	valid := slices.DeleteFunc(scope.Names(), func(name string) bool {
		function, ok := scope.Lookup(name).(*types.Func)
		return !ok || isHidden(function)
	})
	if f.Import == nil {
		for _, name := range methodNames(c.self()) {
			valid = append(valid, "."+name)
		}
	}
	c.reportUnknown(f, unknown, valid)
	return nil
}

// member finds a method or a field of a variable of type t.
func (c *methods) member(f *model.Fallback, of model.FallbackOf, t types.Type) types.Object {
	f.Of = of
	o, _, _ := types.LookupFieldOrMethod(t, true, c.pkg.Types, f.Name)
	if o == nil {
		c.reportUnknown(f, c.text(t)+" has no method", methodNames(t))
	}
	return o
}

// reportUnknown reports the name of the function or method, which is the last word of the fallback.
func (c *methods) reportUnknown(f *model.Fallback, unknown string, valid []string) {
	c.found.Add(f.Func.At(len(f.Func.Value)-len(f.Name)), "%s %s%s", unknown, f.Name, annotations.Suggest(f.Name, valid))
}

func methodNames(t types.Type) []string {
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	var found []string
	for s := range types.NewMethodSet(t).Methods() {
		found = append(found, s.Obj().Name())
	}
	return found
}
