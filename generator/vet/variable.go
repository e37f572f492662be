package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// assigned is what a variable gets: a value of a type, or what another variable has.
type assigned struct {
	object *types.TypeName
	from   *types.Var
}

// findAssigned finds what the files assign to variables and fields.
func (c *checker) findAssigned(files []*ast.File) {
	for object := range c.inside {
		for _, part := range c.partsOf(object) {
			for _, f := range fields(part) {
				c.free[f] = true
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					c.assign(c.variable(name), n.Values, i)
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					c.assign(c.variable(left), n.Rhs, i)
				}
			case *ast.CompositeLit:
				c.assignFields(n)
			case *ast.RangeStmt:
				c.free[c.variable(n.Key)], c.free[c.variable(n.Value)] = true, true
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					c.free[c.variable(n.X)] = true
				}
			case *ast.CaseClause: // of a switch over types, which declares a variable in each
				v, _ := c.TypesInfo.Implicits[n].(*types.Var)
				c.free[v] = true
			case *ast.CallExpr: // a conversion may be one of another struct
				if c.TypesInfo.Types[n.Fun].IsType() {
					for _, f := range fields(c.TypesInfo.TypeOf(n)) {
						c.free[f] = true
					}
				}
			}
			return true
		})
	}
}

// assign notes that v gets the i-th of values, or of the results of the call that is the only one.
func (c *checker) assign(v *types.Var, values []ast.Expr, i int) {
	if v == nil || len(values) == 0 || !types.IsInterface(v.Type()) {
		return
	}
	var a assigned // to nil is nothing
	if results, ok := c.TypesInfo.TypeOf(values[0]).(*types.Tuple); ok {
		a.object = typeName(results.At(i).Type())
	} else {
		e := c.unconverted(values[i])
		value := c.TypesInfo.Types[e]
		if value.IsNil() {
			return
		}
		if a.object = typeName(value.Type); types.IsInterface(value.Type) {
			a.from = c.variable(e)
		}
	}
	c.assigned[v] = append(c.assigned[v], a)
}

// unconverted returns what e converts to an interface.
func (c *checker) unconverted(e ast.Expr) ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !c.TypesInfo.Types[call.Fun].IsType() || !types.IsInterface(c.TypesInfo.TypeOf(call)) {
		return e
	}
	return c.unconverted(call.Args[0])
}

func (c *checker) assignFields(lit *ast.CompositeLit) {
	all := fields(c.TypesInfo.TypeOf(lit))
	if all == nil {
		return
	}
	for i, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			c.assign(c.variable(pair.Key), []ast.Expr{pair.Value}, 0)
		} else {
			c.assign(all[i], lit.Elts, i)
		}
	}
}

// fields returns those of the struct that t is or points to.
func fields(t types.Type) []*types.Var {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	var all []*types.Var
	for f := range s.Fields() {
		all = append(all, f.Origin())
	}
	return all
}

// variable returns the variable or the field that e is; nil if it is none.
func (c *checker) variable(e ast.Expr) *types.Var {
	var object types.Object
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		object = c.TypesInfo.ObjectOf(e)
	case *ast.SelectorExpr:
		object = c.TypesInfo.ObjectOf(e.Sel)
	}
	if v, ok := object.(*types.Var); ok {
		return v.Origin()
	}
	return nil
}

// bareType returns the type of e. Of a variable that holds an interface, it is the type of a value in it, if all are bare that it
// ever gets, and else nil.
func (c *checker) bareType(e ast.Expr) *types.TypeName {
	e = c.unconverted(e)
	if t := c.TypesInfo.TypeOf(e); !types.IsInterface(t) {
		return typeName(t)
	}
	return c.heldBy(c.variable(e))
}

func (c *checker) heldBy(v *types.Var) *types.TypeName {
	if v == nil || c.free[v] || !c.isOwn(v) {
		return nil
	}
	if object, ok := c.held[v]; ok {
		return object
	}
	c.held[v] = nil // meanwhile: two variables may be assigned to each other
	var found *types.TypeName
	for _, a := range c.assigned[v] {
		if found = a.object; a.from != nil {
			found = c.heldBy(a.from)
		}
		if !anyIsOf(c.limits(found), typeName(v.Type())) {
			return nil
		}
	}
	c.held[v] = found
	return found
}

// isOwn reports whether nobody but this package can assign to v.
func (c *checker) isOwn(v *types.Var) bool {
	switch v.Kind() {
	case types.LocalVar:
		return true
	case types.PackageVar, types.FieldVar:
		return !v.Exported()
	}
	return false
}
