package bypass

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// checkUnlimited reports uses of the method Unlimited of a wrapper, which returns the value that the wrapper calls. A method of that name that
// the annotated type has itself is another one.
func (c *checker) checkUnlimited(root inspector.Cursor) {
	for at := range root.Preorder((*ast.SelectorExpr)(nil)) {
		e := at.Node().(*ast.SelectorExpr)
		method, ok := c.TypesInfo.Uses[e.Sel].(*types.Func)
		if !ok || e.Sel.Name != "Unlimited" || method.Signature().Recv() == nil {
			continue
		}
		annotated := c.wrappers[source.TypeName(method.Signature().Recv().Type())]
		if annotated == nil {
			continue
		}
		if own, _, _ := types.LookupFieldOrMethod(annotated.Type(), true, annotated.Pkg(), e.Sel.Name); own == nil {
			c.addAnyway(e.Sel, "what Unlimited returns has no rate limits; use the wrapper, or end this line with //ratelimit:bare and a reason")
		}
	}
}
