package bypass

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// checkSelfCalls reports limited methods that a method calls on its receiver, if the wrapper is the only limit: the receiver is never the
// wrapper.
func (c *checker) checkSelfCalls(root inspector.Cursor) {
	used := c.usedAs(root)
	for _, f := range c.sources() {
		for _, d := range source.Methods(f) {
			if names := d.Recv.List[0].Names; len(names) == 1 && d.Body != nil {
				recv, _ := c.TypesInfo.Defs[names[0]].(*types.Var)
				c.checkSelf(d, recv, used)
			}
		}
	}
}

// checkSelf checks the calls that a method makes on its receiver. A method that the same rule of the type covers has taken its permit already.
func (c *checker) checkSelf(d *ast.FuncDecl, recv *types.Var, used map[*types.TypeName][]*limited) {
	if recv == nil || c.guards[source.TypeName(recv.Type())] != nil || c.changes(d.Body, recv) {
		return
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		e, ok := n.(*ast.SelectorExpr)
		if !ok || !c.isUse(e.X, recv) || c.TypesInfo.Selections[e].Kind() != types.MethodVal {
			return true
		}
		for _, l := range used[source.TypeName(recv.Type())] {
			if slices.Contains(l.Ruled, e.Sel.Name) || l.covers(e.Sel.Name) && !l.covers(d.Name.Name) {
				c.addAnyway(e.Sel, "%s of the receiver has no limits, as only what %s returns has them; give %s a guard, or end this line with "+
					"//ratelimit:bare and a reason", e.Sel.Name, c.nameOf(l), source.TypeName(recv.Type()).Name())
				break
			}
		}
		return true
	})
}

// usedAs returns the limits of the types of this package: of annotated structs, and of types that become an annotated interface somewhere in the
// package and are no decorators.
func (c *checker) usedAs(root inspector.Cursor) map[*types.TypeName][]*limited {
	used := map[*types.TypeName][]*limited{}
	add := func(value ast.Expr, from types.Type, l *limited) {
		name := source.TypeName(from)
		if l != nil && name != nil && name.Pkg() == c.Pkg && !types.IsInterface(from) && !slices.Contains(used[name], l) && !c.decorates(value, from, l) {
			used[name] = append(used[name], l)
		}
	}
	for annotated, l := range c.limited {
		if annotated.Pkg() == c.Pkg && !types.IsInterface(annotated.Type()) {
			used[annotated] = []*limited{l}
		}
	}
	for at := range root.Preorder() {
		for _, t := range c.transfers(at) {
			if t.from != nil && t.to != nil {
				add(t.value, t.from, c.limited[source.TypeName(t.to)])
			}
		}
		if v, ok := at.Node().(*ast.ValueSpec); ok && v.Type != nil { // also var _ Sender = (*Client)(nil)
			for _, value := range v.Values {
				add(value, c.TypesInfo.TypeOf(value), c.limited[source.TypeName(c.TypesInfo.TypeOf(v.Type))])
			}
		}
	}
	return used
}

// ruledMethods returns the methods of this package that have a rule of their own.
func (c *checker) ruledMethods() map[types.Object]bool {
	ruled := map[types.Object]bool{}
	for _, f := range c.sources() {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				ruled[c.TypesInfo.Defs[n.Name]] = source.Begins(n.Doc, annotations.Head+"rule")
				return false
			case *ast.Field:
				for _, name := range n.Names {
					ruled[c.TypesInfo.Defs[name]] = source.Begins(n.Doc, annotations.Head+"rule")
				}
			}
			return true
		})
	}
	return ruled
}

// changes reports whether code assigns to a receiver, or takes its address.
func (c *checker) changes(body *ast.BlockStmt, recv *types.Var) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			found = found || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return c.isUse(e, recv) })
		case *ast.RangeStmt:
			found = found || n.Tok == token.ASSIGN && (c.isUse(n.Key, recv) || c.isUse(n.Value, recv))
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && c.isUse(n.X, recv)
		}
		return !found
	})
	return found
}

// isUse reports whether an expression is a variable, or what it points to.
func (c *checker) isUse(e ast.Expr, v *types.Var) bool {
	e = ast.Unparen(e)
	if star, ok := e.(*ast.StarExpr); ok {
		e = ast.Unparen(star.X)
	}
	id, ok := e.(*ast.Ident)
	return ok && c.TypesInfo.ObjectOf(id) == v
}
