package exprvm

import (
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/ast"
)

// backwards turns a search from the end of a list into a search from the beginning of the reversed list. Expr's own search leaves values on
// the machine's stack, and a call around it would take them for its arguments.
func (p *patcher) backwards(node *ast.Node, n *ast.BuiltinNode) {
	list, each := n.Arguments[0], n.Arguments[1]
	if n.Name == "findLast" {
		ast.Patch(node, &ast.BuiltinNode{Name: "find", Arguments: []ast.Node{reversed(list), each}})
		return
	}
	p.lists++
	name := fmt.Sprintf("$list%d", p.lists)
	named := func() ast.Node { return &ast.IdentifierNode{Value: name} }
	search := &ast.BuiltinNode{Name: "findIndex", Arguments: []ast.Node{reversed(named()), each}}
	let := &ast.VariableDeclaratorNode{Name: name, Value: list, Expr: search}
	p.replace(&let.Expr, "mirrored", search, named())
	ast.Patch(node, let)
}

func reversed(list ast.Node) ast.Node {
	return &ast.BuiltinNode{Name: "reverse", Arguments: []ast.Node{list}}
}

// mirrored turns the first argument, an index in the reversed list, into an index in the list. It returns nil for nil.
func mirrored(args ...any) any {
	i, ok := args[0].(int)
	if !ok {
		return nil
	}
	return reflect.Indirect(reflect.ValueOf(args[1])).Len() - 1 - i
}
