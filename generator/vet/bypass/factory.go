package bypass

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// isFactory is the fact that a function returns an annotated interface, and each of its return statements a value without limits.
type isFactory struct{}

func (*isFactory) AFact()         {}
func (*isFactory) String() string { return "returns bare values" }

// declareFactories exports the facts of the factories of this package, unless their return statements are reported.
func (c *checker) declareFactories(root inspector.Cursor, reported bool) {
	factories := map[*types.Func]bool{}
	for at := range root.Preorder((*ast.ReturnStmt)(nil)) {
		values := c.transfers(at)
		if values == nil { // the values of named results
			for _, result := range c.results(at) {
				values = append(values, transfer{from: result.to, target: result})
			}
		}
		for _, t := range values {
			fn, ok := t.owner.(*types.Func)
			l := c.limited[source.TypeName(t.to)]
			if !ok || l == nil || t.from == types.Typ[types.UntypedNil] || !types.IsInterface(t.to) {
				continue
			}
			before, seen := factories[fn]
			factories[fn] = (before || !seen) && c.isBare(t, l) && (!reported || c.isOwn(l)) && !c.isWrapped(fn, l.annotated.Pkg())
		}
	}
	for fn, is := range factories {
		if is {
			c.ExportObjectFact(fn, &isFactory{})
		}
	}
}

// isBare reports whether a value is certainly without limits, and not on purpose.
func (c *checker) isBare(t transfer, l *limited) bool {
	return !types.IsInterface(t.from) && c.wrappers[source.TypeName(t.from)] == nil && !c.decorates(t.value, t.from, l) && !c.excused(t.value.Pos())
}

// checkFactory reports the result of a factory of another package, which moves somewhere.
func (c *checker) checkFactory(t transfer) {
	call, ok := t.value.(*ast.CallExpr)
	if l := c.limited[source.TypeName(t.from)]; ok && t.to != nil && l != nil && c.factories[c.callee(call)] {
		c.add(call, "%s returns a bare %s; wrap it with %s", types.ExprString(call.Fun), c.name(t.from), c.nameOf(l))
	}
}
