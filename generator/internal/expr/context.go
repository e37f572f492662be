package expr

import (
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Context returns where a method finds its context: the index of the first parameter that is a context.Context or else
// implements it. Without one it is the first parameter with a method Context() context.Context, as an *http.Request and the
// stream of gRPC have it, and called is true. The index is -1 if there is neither.
func Context(params []Param) (i int, called bool) {
	find := func(is func(types.Type) bool) int {
		return slices.IndexFunc(params, func(p Param) bool { return is(p.Type) })
	}
	if i = find(func(t types.Type) bool { return types.Unalias(t).String() == "context.Context" }); i < 0 {
		i = find(implementsContext)
	}
	if i >= 0 {
		return i, false
	}
	i = find(func(t types.Type) bool { return contextMethod(t) != nil })
	return i, i >= 0
}

// contextMethod returns the method of t that returns its context, or nil.
func contextMethod(t types.Type) *types.Func {
	s := types.NewMethodSet(t).Lookup(nil, "Context")
	if s == nil {
		return nil
	}
	m, ok := s.Obj().(*types.Func)
	if !ok || m.Signature().Params().Len() > 0 || m.Signature().Results().Len() != 1 ||
		!implementsContext(m.Signature().Results().At(0).Type()) {
		return nil
	}
	return m
}

// cancelled has the methods of a context but for Deadline, whose time.Time may be out of reach.
var cancelled = having("Done() <-chan struct{}; Err() error; Value(any) any")

// implementsContext reports whether t has the methods of a context. The package need not import that.
func implementsContext(t types.Type) bool {
	deadline := types.NewMethodSet(t).Lookup(nil, "Deadline")
	if deadline == nil || !types.Implements(t, cancelled) {
		return false
	}
	sig := deadline.Type().(*types.Signature)
	results := sig.Results()
	return sig.Params().Len() == 0 && results.Len() == 2 && isTime(results.At(0).Type()) && types.Identical(results.At(1).Type(), truth)
}

// context is ctx on a method without a parameter of that name.
func (c *compiler) context(n *ast.IdentifierNode) *term {
	i, called := Context(c.env.Params)
	if i < 0 {
		return c.errorf(n, "unknown name ctx; the method has no parameter that is a context.Context or has a method Context() context.Context")
	}
	t := c.ofMethod(n, i)
	if t == nil {
		return nil
	}
	if called {
		t = c.callMethod(t, "Context", contextMethod(t.typ).Signature().Results().At(0).Type())
	}
	t.node = n
	c.named("ctx", t.write)
	return t
}
