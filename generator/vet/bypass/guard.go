package bypass

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// checkGuards reports limited methods of guarded types that do not begin with a call of their guard, or drop what it returns.
func (c *checker) checkGuards() {
	for _, f := range c.sources() {
		for doc, spec := range source.Types(f) {
			if !source.Begins(doc, annotations.Head+"guard") {
				continue
			}
			g, _ := annotations.Parse(doc)
			guard, _ := c.Pkg.Scope().Lookup(source.NamesFor(spec.Name.Name, g).Type).(*types.TypeName)
			if guarded, ok := c.TypesInfo.Defs[spec.Name].(*types.TypeName); ok && guard != nil {
				c.guards[guarded] = guard
			}
		}
	}
	if len(c.guards) == 0 {
		return
	}
	for _, f := range c.sources() {
		for _, d := range source.Methods(f) {
			method := c.TypesInfo.Defs[d.Name].(*types.Func)
			guard := c.guards[source.TypeName(method.Signature().Recv().Type())]
			if guard == nil || d.Body == nil {
				continue
			}
			if object, _, _ := types.LookupFieldOrMethod(guard.Type(), true, c.Pkg, d.Name.Name); object != nil {
				(&guarded{c, d, method.Signature(), guard}).check()
			}
		}
	}
}

// guarded is a limited method of a guarded type.
type guarded struct {
	*checker
	decl  *ast.FuncDecl
	sig   *types.Signature
	guard *types.TypeName
}

// check looks at the statements up to the call of the guard.
func (g *guarded) check() {
	name := g.decl.Name.Name
	for i, stmt := range g.decl.Body.List {
		if call, callee := g.callIn(stmt); call != nil {
			if callee.Name() != name {
				g.addAnyway(call.Fun, "%s calls the guard's method %s; expected %s", name, callee.Name(), name)
				return
			}
			g.checkResults(stmt, call, g.decl.Body.List[i+1:])
			return
		}
		if !g.isHarmless(stmt) {
			break
		}
	}
	g.addAnyway(g.decl.Name, "%s does not begin with a call of its guard, so its limits come too late or never; "+
		"before it only assignments without calls and checks of parameters may stand", name)
}

// callIn returns the call of a method of the guard that a statement makes in any case, or nil.
func (g *guarded) callIn(stmt ast.Stmt) (found *ast.CallExpr, callee *types.Func) {
	var parts []ast.Node
	switch s := stmt.(type) {
	case *ast.IfStmt:
		if parts = []ast.Node{s.Cond}; s.Init != nil {
			parts = append(parts, s.Init)
		}
	case *ast.AssignStmt, *ast.DeclStmt, *ast.ExprStmt, *ast.ReturnStmt:
		parts = []ast.Node{s}
	}
	for _, part := range parts {
		ast.Inspect(part, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if fn := g.callee(call); fn != nil && fn.Signature().Recv() != nil && source.TypeName(fn.Signature().Recv().Type()) == g.guard {
					found, callee = call, fn
				}
			}
			_, isFunc := n.(*ast.FuncLit)
			return !isFunc
		})
	}
	return found, callee
}

// isHarmless reports whether a statement may stand before the call of the guard: an assignment without calls, or a check of parameters.
func (g *guarded) isHarmless(stmt ast.Stmt) bool {
	switch s := stmt.(type) {
	case *ast.AssignStmt, *ast.DeclStmt:
		return !g.has(s, g.isWork)
	case *ast.IfStmt:
		last := len(s.Body.List) - 1
		if s.Else != nil || last < 0 || s.Init != nil && g.has(s.Init, g.isOutside) || g.has(s.Cond, g.isOutside) {
			return false
		}
		_, returns := s.Body.List[last].(*ast.ReturnStmt)
		return returns
	}
	return false
}

// has reports whether a node contains another one of this kind, outside of func literals.
func (g *guarded) has(in ast.Node, is func(ast.Node) bool) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		if _, isFunc := n.(*ast.FuncLit); isFunc || n == nil {
			return false
		}
		found = found || is(n)
		return !found
	})
	return found
}

// isWork reports whether n calls a function or receives from a channel. Conversions and built-in functions are no work.
func (g *guarded) isWork(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		fun := g.TypesInfo.Types[n.Fun]
		return !fun.IsType() && !fun.IsBuiltin()
	case *ast.UnaryExpr:
		return n.Op == token.ARROW
	}
	return false
}

// isOutside reports whether n is the receiver, or a call of a method of a variable of a package: no matter of the parameters.
func (g *guarded) isOutside(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Ident:
		return g.sig.Recv() != nil && g.TypesInfo.Uses[n] == g.sig.Recv()
	case *ast.SelectorExpr:
		if s := g.TypesInfo.Selections[n]; s == nil || s.Kind() != types.MethodVal {
			return false
		}
		root, ok := ast.Unparen(n.X).(*ast.Ident)
		if !ok {
			return false
		}
		v, ok := g.TypesInfo.Uses[root].(*types.Var)
		return ok && v.Parent() == g.Pkg.Scope()
	}
	return false
}

// checkResults reports results of the guard that the method drops, and a func that it does not defer at once with pointers to its own
// results. The other statements come after that with the call.
func (g *guarded) checkResults(stmt ast.Stmt, call *ast.CallExpr, others []ast.Stmt) {
	if s, ok := stmt.(*ast.IfStmt); ok && s.Init != nil {
		stmt = s.Init
	}
	if s, ok := stmt.(*ast.ExprStmt); ok && s.X == call {
		g.addAnyway(call, "the error of the guard is dropped, so %s refuses no calls", g.decl.Name.Name)
		return
	}
	s, ok := stmt.(*ast.AssignStmt)
	if !ok || len(s.Rhs) != 1 || s.Rhs[0] != call {
		return
	}
	for i, e := range s.Lhs {
		id, ok := e.(*ast.Ident)
		switch {
		case ok && id.Name == "_" && i == len(s.Lhs)-1:
			g.addAnyway(id, "the error of the guard is dropped, so %s refuses no calls", g.decl.Name.Name)
		case ok && id.Name == "_":
			g.addAnyway(id, "the func of the guard is dropped; defer it, with pointers to the results of %s", g.decl.Name.Name)
		case ok && i == 0 && len(s.Lhs) == 2:
			g.checkDone(g.TypesInfo.ObjectOf(id))
			g.checkAtOnce(g.TypesInfo.ObjectOf(id), others)
		}
	}
}

// checkDone checks the calls of the func that the guard has returned, which is in a variable. Func literals that are not deferred may call
// it whenever the call is over.
func (g *guarded) checkDone(done types.Object) {
	isDone := func(n ast.Node) bool { return g.calls(n, done) }
	const itself = "defer %s itself, as in defer %[1]s(&err); elsewhere it misses panics"
	ast.Inspect(g.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.DeferStmt:
			lit, isFunc := n.Call.Fun.(*ast.FuncLit)
			switch {
			case isDone(n.Call):
				g.checkPointers(n.Call)
			case isFunc && g.has(lit.Body, isDone):
				g.addAnyway(n, itself, done.Name())
			}
			return false
		case *ast.CallExpr:
			if isDone(n) {
				g.addAnyway(n, itself, done.Name())
			}
		}
		return true
	})
}

// calls reports whether n is a call of the func in a variable.
func (g *guarded) calls(n ast.Node, variable types.Object) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && g.TypesInfo.Uses[id] == variable
}

// checkAtOnce reports that done is deferred after a statement that does some work, and so may return or panic before.
func (g *guarded) checkAtOnce(done types.Object, others []ast.Stmt) {
	late := false
	for _, stmt := range others {
		if d, ok := stmt.(*ast.DeferStmt); ok && g.calls(d.Call, done) {
			if late {
				g.addAnyway(d, "%s is deferred too late, so a call that ends before keeps its permits; defer it right after the check of the error", done.Name())
			}
			return
		}
		if check, ok := stmt.(*ast.IfStmt); ok {
			late = late || check.Init != nil && g.has(check.Init, g.isWork)
		} else {
			late = late || !g.isHarmless(stmt)
		}
	}
}

// checkPointers reports an argument of done that does not point to a result of the method.
func (g *guarded) checkPointers(call *ast.CallExpr) {
	for i, arg := range call.Args {
		if i >= g.sig.Results().Len() {
			return
		}
		if pointer, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && pointer.Op == token.AND {
			if id, ok := pointer.X.(*ast.Ident); ok && g.TypesInfo.Uses[id] == g.sig.Results().At(i) {
				continue
			}
		}
		g.addAnyway(arg, "this is no pointer to result %d of %s, so the guard sees another value; name the results, and pass pointers to them",
			i+1, g.decl.Name.Name)
	}
}
