package expr

import (
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Context returns the index of the parameter that has the context of a call: the first context.Context, or else the first parameter
// that implements it. If there is none, it is the first parameter with a method Context() context.Context, such as an
// *http.Request or a stream of gRPC, and called is true. The index is -1 if there is no such parameter either.
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
	i = find(func(t types.Type) bool { return ContextOf(t) != nil })
	return i, i >= 0
}

// ContextOf returns the type of the context that the method Context of t returns, or nil if there is none.
func ContextOf(t types.Type) types.Type {
	m := types.NewMethodSet(t).Lookup(nil, "Context")
	if m == nil {
		return nil
	}
	sig := m.Type().(*types.Signature)
	if sig.Params().Len() > 0 || sig.Results().Len() != 1 || !implementsContext(sig.Results().At(0).Type()) {
		return nil
	}
	return sig.Results().At(0).Type()
}

// cancelled has the methods of a context without Deadline, as the package may not import time.
var cancelled = having("Done() <-chan struct{}; Err() error; Value(any) any")

// implementsContext reports whether t has the methods of a context. It works without the types of package context.
func implementsContext(t types.Type) bool {
	deadline := types.NewMethodSet(t).Lookup(nil, "Deadline")
	if deadline == nil || !types.Implements(t, cancelled) {
		return false
	}
	sig := deadline.Type().(*types.Signature)
	results := sig.Results()
	return sig.Params().Len() == 0 && results.Len() == 2 && isTime(results.At(0).Type()) && types.Identical(results.At(1).Type(), truth)
}

// hasContext reports whether ctx means a context in a method without a parameter of that name.
func (e *Env) hasContext() bool {
	i, _ := Context(e.Params)
	return i >= 0 || e.OwnContext != nil
}

// context lowers the name ctx in a method without a parameter of that name.
func (c *compiler) context(n *ast.IdentifierNode) *term {
	i, called := Context(c.env.Params)
	own := i < 0 && c.env.OwnContext != nil
	switch {
	case own:
		i = len(c.env.Params) // the wrapped value
	case i < 0:
		return c.unknown(n, "; the method has no parameter that is a context.Context or has a method Context() context.Context")
	}
	t := c.ofMethod(n, i)
	if of := t; called || own { // which is not nil: that is checked before
		typ := c.env.OwnContext
		if called {
			typ = ContextOf(of.typ)
		}
		t = &term{typ: typ, write: func(w *writer) operand { return primary(w.term(of).text + ".Context()") }}
	}
	t.node = n
	return t
}
