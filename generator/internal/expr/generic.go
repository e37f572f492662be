package expr

import (
	"errors"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	goast "go/ast"

	"github.com/expr-lang/expr/ast"
)

// instance returns the signature of a generic function of the package in a call, with the type arguments that Go infers.
func (c *compiler) instance(n *ast.CallNode, name string, args []*term) *types.Signature {
	scope := types.NewPackage(c.env.Package.Path(), c.env.Package.Name())
	scope.Scope().Insert(c.env.Package.Scope().Lookup(name))
	var words []string
	for i, t := range args {
		if t.lit && t.spelled {
			words = append(words, spelled(t.con))
			continue
		}
		var o types.Object = types.NewVar(token.NoPos, scope, "ʻ"+strconv.Itoa(i+1), t.typ)
		if t.lit { // a constant of the package keeps its own type: Go infers rune from 'a', but int from 97
			o = c.env.Package.Scope().Lookup(t.node.String())
		}
		if o == nil { // a constant of another package
			o = types.NewConst(token.NoPos, scope, "ʻ"+strconv.Itoa(i+1), types.Typ[untyped[t.typ.(*types.Basic).Kind()]], constantOf(t.con, isFloat(t.typ)))
		}
		scope.Scope().Insert(o)
		words = append(words, o.Name())
	}
	call, _ := parser.ParseExpr(name + "(" + strings.Join(words, ", ") + ")") // no error, as it has only names and literals
	info := &types.Info{Instances: map[*goast.Ident]types.Instance{}}
	if err := types.CheckExpr(token.NewFileSet(), scope, token.NoPos, call, info); err != nil {
		c.errorf(n, "%s: %s", name, inferenceError(err))
		return nil
	}
	return info.Instances[call.(*goast.CallExpr).Fun.(*goast.Ident)].Type.(*types.Signature)
}

// untyped are the kinds of untyped constants by those of their default types.
var untyped = map[types.BasicKind]types.BasicKind{
	types.Int: types.UntypedInt, types.Int64: types.UntypedInt, types.Int32: types.UntypedRune, types.Float64: types.UntypedFloat,
	types.String: types.UntypedString, types.Bool: types.UntypedBool,
}

// inferenceError returns the message of go/types without its position.
func inferenceError(err error) string {
	e, _ := errors.AsType[types.Error](err)
	msg := strings.Join(strings.Fields(e.Msg), " ")
	return strings.NewReplacer("ʻ", "argument ", " (declared at -)", "").Replace(msg)
}
