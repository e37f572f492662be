package collect

import (
	"go/ast"
	"go/types"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// hasLength reports whether t is an array of this package whose length is more than a number.
func (c *collector) hasLength(t types.Type) bool {
	a, ok := t.(*types.Array)
	return ok && c.pkg.Lengths[a] != nil
}

// array returns t with its elements rewritten, and with its length as it is declared, if that can be written here, too.
func (r *rewriter) array(t *types.Array) types.Type {
	rewritten := types.NewArray(r.rewrite(t.Elem()), t.Len())
	if r.hasLength(t) {
		if length, ok := r.spell(nil, r.pkg.Lengths[t]); ok {
			return r.arrays.Add(rewritten, &names.Array{Length: length, Elem: rewritten.Elem()})
		}
	}
	return rewritten
}

// spell adds an expression to parts; ok is false for what is no sum of names, numbers and calls.
func (r *rewriter) spell(parts []names.Part, e ast.Expr) (_ []names.Part, ok bool) {
	text := func(s string) { parts = append(parts, names.Part{Text: s}) }
	add := func(e ast.Expr) {
		if ok {
			parts, ok = r.spell(parts, e)
		}
	}
	ok = true
	switch e := e.(type) {
	case *ast.BasicLit:
		text(e.Value)
	case *ast.Ident:
		return r.spellName(parts, e)
	case *ast.SelectorExpr:
		id, isName := e.X.(*ast.Ident)
		if isName {
			_, isName = r.pkg.Uses[id].(*types.PkgName)
		}
		if !isName {
			return parts, false
		}
		return r.spellName(parts, e.Sel)
	case *ast.ParenExpr:
		text("(")
		add(e.X)
		text(")")
	case *ast.UnaryExpr:
		text(e.Op.String())
		add(e.X)
	case *ast.BinaryExpr:
		add(e.X)
		text(e.Op.String())
		add(e.Y)
	case *ast.CallExpr:
		add(e.Fun)
		text("(")
		for i, arg := range e.Args {
			if i > 0 {
				text(", ")
			}
			add(arg)
		}
		text(")")
	default:
		return parts, false
	}
	return parts, ok
}

// spellName adds what id names, if that has no other meaning in the wrapper.
func (r *rewriter) spellName(parts []names.Part, id *ast.Ident) ([]names.Part, bool) {
	o := r.pkg.Uses[id]
	switch {
	case o == nil:
		return parts, false
	case o.Pkg() == nil:
		return append(parts, names.Part{Text: id.Name}), !r.from().Redefined(id.Name)
	case o.Pkg() == r.pkg.Types:
		return append(parts, names.Part{Text: id.Name}), o.Parent() == r.pkg.Types.Scope() && !r.from().Hidden(id.Name)
	}
	return append(parts, names.Part{Text: id.Name, Of: o.Pkg()}), true
}
