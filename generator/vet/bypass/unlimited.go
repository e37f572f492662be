package bypass

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// checkUnlimited reports uses of the method Unlimited of a wrapper, which returns the value that the wrapper calls, also through an interface. A
// method of that name that the annotated type has itself is another one.
func (c *checker) checkUnlimited(root inspector.Cursor) {
	for at := range root.Preorder((*ast.SelectorExpr)(nil)) {
		e := at.Node().(*ast.SelectorExpr)
		method, ok := c.TypesInfo.Uses[e.Sel].(*types.Func)
		if !ok || e.Sel.Name != "Unlimited" || method.Signature().Recv() == nil {
			continue
		}
		annotated := c.unwrapped(method.Signature())
		if annotated == nil {
			continue
		}
		if own, _, _ := types.LookupFieldOrMethod(annotated.Type(), true, annotated.Pkg(), e.Sel.Name); own == nil {
			c.addAnyway(e.Sel, "what Unlimited returns has no rate limits; use the wrapper, or end this line with //ratelimit:bare and a reason")
		}
	}
}

// unwrapped returns the annotated type whose values a method Unlimited returns, or nil if it is no method of a wrapper.
func (c *checker) unwrapped(sig *types.Signature) *types.TypeName {
	if recv := sig.Recv().Type(); !types.IsInterface(recv) || sig.Params().Len() > 0 || sig.Results().Len() != 1 {
		return c.wrappers[source.TypeName(recv)]
	}
	result := source.TypeName(sig.Results().At(0).Type())
	for _, annotated := range c.wrappers {
		if annotated == result {
			return annotated
		}
	}
	return nil
}
