package bypass

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// isWrapped is the fact that a generated constructor gets the values of a parameter or of a field.
type isWrapped struct{}

func (*isWrapped) AFact()         {}
func (*isWrapped) String() string { return "wrapped" }

// findWrapped returns the expressions that generated constructors get values from, and exports the parameters and fields that
// these come through. It goes by the names that an expression mentions and not by the order of statements: it may return too
// many expressions, so that a finding is missed, rather than too few.
func (c *checker) findWrapped(root inspector.Cursor) []ast.Node {
	o := origins{checker: c, of: map[any][]ast.Expr{}, seen: map[any]bool{}}
	for at := range root.Preorder() {
		o.note(at)
	}
	for _, v := range c.wrapped {
		o.follow(v)
	}
	return o.found
}

// origins knows where the variables and the results of a package get their values from.
type origins struct {
	*checker
	of       map[any][]ast.Expr // by place.of
	handedOn []any              // the *types.Func or *ast.FuncLit of functions that are passed on as values, so that others call them
	seen     map[any]bool
	found    []ast.Node
}

// note notes what the node at says about the origin of values.
func (o *origins) note(at inspector.Cursor) {
	for _, t := range o.transfers(at) {
		if t.place.of != nil {
			o.of[t.place.of] = append(o.of[t.place.of], t.value)
		}
		if f := o.function(t.value); f != nil {
			o.handedOn = append(o.handedOn, f)
		}
	}
	if d, ok := at.Node().(*ast.FuncDecl); ok && d.Type.Results != nil {
		for _, f := range d.Type.Results.List {
			for _, name := range f.Names { // which a return need not mention
				fn := o.TypesInfo.Defs[d.Name]
				o.of[fn] = append(o.of[fn], name)
			}
		}
	}
}

// function returns the function that e names or is; nil if it is none.
func (o *origins) function(e ast.Expr) any {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return e
	case *ast.SelectorExpr:
		return o.function(e.Sel)
	case *ast.Ident:
		if fn, ok := o.TypesInfo.Uses[e].(*types.Func); ok {
			return fn.Origin()
		}
	}
	return nil
}

// follow finds what is mentioned where a variable or a result gets its values from.
func (o *origins) follow(of any) {
	if of == nil || o.seen[of] {
		return
	}
	o.seen[of] = true
	for _, e := range o.of[of] {
		o.found = append(o.found, e)
		o.followMentioned(e)
	}
	if v, ok := of.(*types.Var); ok && (v.Kind() == types.ParamVar || v.Kind() == types.FieldVar) {
		if v.Pkg() == o.Pkg && o.Pkg.Name() != "main" && !slices.Contains(o.wrapped, v) {
			o.ExportObjectFact(v, &isWrapped{})
		}
		o.followHandedOn(v)
	}
}

func (o *origins) followMentioned(e ast.Node) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // of a.sender, only the field matters
			o.followMentioned(n.Sel)
			_, isName := n.X.(*ast.Ident)
			return !isName
		case *ast.KeyValueExpr: // of options{sender: s}, only s does
			if v, ok := o.variable(n.Key).(*types.Var); ok && v.IsField() {
				o.followMentioned(n.Value)
				return false
			}
		case *ast.Ident:
			switch object := o.TypesInfo.ObjectOf(n).(type) {
			case *types.Var:
				o.follow(object.Origin())
			case *types.Func:
				o.follow(object.Origin())
			}
		}
		return true
	})
}

// followHandedOn follows the results of functions that are passed on as values, where the parameter v is one of such a function too:
// a container that calls all of them, such as fx, may connect the two.
func (o *origins) followHandedOn(v *types.Var) {
	if !slices.ContainsFunc(o.handedOn, func(f any) bool { return slices.Contains(variables(o.signature(f).Params()), v) }) {
		return
	}
	for _, f := range o.handedOn {
		for _, result := range variables(o.signature(f).Results()) {
			if types.Identical(result.Type(), v.Type()) {
				o.follow(f)
			}
		}
	}
}

func (o *origins) signature(f any) *types.Signature {
	if lit, ok := f.(*ast.FuncLit); ok {
		return o.TypesInfo.TypeOf(lit).(*types.Signature)
	}
	return f.(*types.Func).Signature()
}

func variables(t *types.Tuple) []*types.Var { return slices.Collect(t.Variables()) }
