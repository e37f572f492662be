package exprvm

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// backwards makes a search from the end one from the beginning of the reversed list. Expr's own leaves values on the
// machine's stack, which a call around it would take for its arguments.
func (p *patcher) backwards(node *ast.Node, n *ast.BuiltinNode) {
	list, each := n.Arguments[0], n.Arguments[1]
	if n.Name == "findLast" {
		search := &ast.BuiltinNode{Name: "find", Arguments: []ast.Node{list, each}}
		p.replace(&search.Arguments[0], "reversed", list)
		ast.Patch(node, search)
		return
	}
	p.lists++
	name := fmt.Sprintf("$list%d", p.lists)
	named := func() ast.Node { return &ast.IdentifierNode{Value: name} }
	search := &ast.BuiltinNode{Name: "findIndex", Arguments: []ast.Node{named(), each}}
	p.replace(&search.Arguments[0], "reversed", search.Arguments[0])
	let := &ast.VariableDeclaratorNode{Name: name, Value: list, Expr: search}
	p.replace(&let.Expr, "mirrored", search, named())
	ast.Patch(node, let)
}

// reversed is a list from its end to its beginning.
func reversed(args ...any) (any, error) {
	r := reflect.Indirect(reflect.ValueOf(args[0]))
	switch r.Kind() {
	case reflect.Slice, reflect.Array, reflect.String:
	default:
		return nil, fmt.Errorf("%T is no list", args[0])
	}
	all := make([]any, r.Len())
	for i := range all {
		all[i] = r.Index(i).Interface()
	}
	slices.Reverse(all)
	return all, nil
}

// mirrored is the index in a list of what stands at the first argument in the reversed one; nil if that is.
func mirrored(args ...any) (any, error) {
	i, ok := args[0].(int)
	if !ok {
		return nil, nil
	}
	return reflect.Indirect(reflect.ValueOf(args[1])).Len() - 1 - i, nil
}
