package exprvm

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// backwards turns a search from the end of a list into a search from the beginning of the reversed list. Expr's own search leaves values on
// the machine's stack, and a call around it would take them for its arguments.
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

// reversed returns a list in reverse order.
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

// mirrored turns the first argument, an index in the reversed list, into an index in the list. It returns nil for nil.
func mirrored(args ...any) (any, error) {
	i, ok := args[0].(int)
	if !ok {
		return nil, nil
	}
	return reflect.Indirect(reflect.ValueOf(args[1])).Len() - 1 - i, nil
}
