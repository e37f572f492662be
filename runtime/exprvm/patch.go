package exprvm

import "github.com/expr-lang/expr/ast"

// envName is expr's name for the environment of an expression. In a patched tree the environment is the list of the values.
const envName = "$env"

// patcher replaces operations of expr with functions of this package, from the leaves of a tree to its root.
type patcher struct {
	index map[string]int    // of the values, by name
	done  map[ast.Node]bool // nodes that stay as they are, such as calls of our functions; a node may occur twice in a tree
	lists int               // the number of lists that have a name
}

func newPatcher(names []string) *patcher {
	p := &patcher{index: map[string]int{}, done: map[ast.Node]bool{}}
	for i, name := range names {
		p.index[name] = i
	}
	return p
}

// Visit implements ast.Visitor.
func (p *patcher) Visit(node *ast.Node) {
	if p.done[*node] {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		p.identifier(node, n)
	case *ast.MemberNode:
		if p.argument(node, n) {
			return
		}
		p.wrap("value", &n.Property)
		base, property := n.Node, n.Property
		if n.Optional { // if hold returns nil, the machine leaves the chain before it computes the property
			p.replace(&n.Node, "hold", base)
			n.Property = &ast.IntegerNode{}
			p.done[n] = true
			base = n
		}
		p.replace(node, "at", base, property)
	case *ast.CallNode:
		// The callee goes first: if a ?. in it ends the chain, nothing of this call is on the machine's stack yet.
		p.replace(node, "call", append([]ast.Node{n.Callee, p.evaluation()}, n.Arguments...)...)
	case *ast.UnaryNode:
		if n.Operator == "-" {
			p.replace(node, "opposite", n.Node)
			return
		}
		p.wrap("plain", &n.Node)
	case *ast.BinaryNode:
		p.binary(node, n)
	case *ast.ConditionalNode:
		p.wrap("plain", &n.Cond)
	case *ast.SliceNode:
		p.wrap("value", &n.Node)
		p.wrap("index", &n.From)
		p.wrap("index", &n.To)
	case *ast.BuiltinNode:
		p.builtin(node, n)
	}
}

// substitutes are our functions that take the place of expr's functions of the same names.
var substitutes = map[string]function{
	"get": boundedResult(look), "int": integral, "abs": absolute, "bitshl": shifted, "min": extreme(">"), "max": extreme("<"),
	"now": library("now"), "date": library("date"),
}

// makers are functions, ours and expr's, whose work or result may be much larger than their arguments.
var makers = map[string]function{
	"repeat": counted(repeated, library("repeat")), "replace": counted(substituted, replace), "join": counted(connected, library("join")),
	"toJSON": counted(indented, library("toJSON")), "flatten": counted(spread, library("flatten")), "uniq": counted(paired, library("uniq")),
	"string": shown,
}

// sum turns a sum into a reduction, which uses our own +.
func (p *patcher) sum(node *ast.Node, n *ast.BuiltinNode) {
	sum := &ast.BinaryNode{Operator: "+", Left: &ast.PointerNode{Name: "acc"}, Right: &ast.PointerNode{}}
	if len(n.Arguments) == 2 {
		sum.Right = n.Arguments[1].(*ast.PredicateNode).Node
	}
	each := &ast.PredicateNode{Node: sum}
	p.binary(&each.Node, sum)
	ast.Patch(node, &ast.BuiltinNode{Name: "reduce", Arguments: []ast.Node{n.Arguments[0], each, &ast.IntegerNode{}}})
}

// identifier turns a name into an element of the values, which are the environment of the expression.
func (p *patcher) identifier(node *ast.Node, n *ast.IdentifierNode) {
	i, ok := p.index[n.Value]
	if !ok {
		return // a variable that the expression declares
	}
	values := &ast.IdentifierNode{Value: envName}
	value := &ast.MemberNode{Node: values, Property: &ast.IntegerNode{Value: i}}
	ast.Patch(node, value)
	p.done[value], p.done[values] = true, true
}

// argument turns $env.name into the value of that name, or nil if there is none. $env alone stays as it is.
func (p *patcher) argument(node *ast.Node, n *ast.MemberNode) bool {
	env, ok := n.Node.(*ast.IdentifierNode)
	name, constant := n.Property.(*ast.StringNode)
	if !ok || !constant || env.Value != envName || p.done[env] {
		return false
	}
	if _, ok := p.index[name.Value]; ok {
		p.identifier(node, &ast.IdentifierNode{Value: name.Value})
	} else {
		ast.Patch(node, &ast.NilNode{})
	}
	return true
}

func (p *patcher) binary(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "??": // expr would replace a pointer by what it points to, which loses the pointer's methods
		choice := *n
		p.replace(&choice.Left, "hold", n.Left)
		choice.Right = &ast.ArrayNode{Nodes: []ast.Node{n.Right}}
		p.done[&choice] = true
		p.replace(node, "held", &choice)
	case "in":
		if r, ok := n.Right.(*ast.BinaryNode); ok && r.Operator == ".." {
			p.replace(node, "within", n.Left, r.Left, r.Right)
			return
		}
		p.countReading(&n.Right)
		p.replace(node, "in", n.Left, n.Right)
	case "+":
		p.replace(node, "added", p.evaluation(), n.Left, n.Right)
	case "-", "*", "%", "<", "<=", ">", ">=":
		p.replace(node, "operate", &ast.StringNode{Value: n.Operator}, n.Left, n.Right)
	case "==":
		p.replace(node, "equal", n.Left, n.Right)
	case "!=":
		same := ast.Node(n)
		p.replace(&same, "equal", n.Left, n.Right)
		ast.Patch(node, &ast.UnaryNode{Operator: "!", Node: same})
		p.done[*node] = true
	case "..":
		p.wrap("number", &n.Left)
		p.wrap("number", &n.Right)
	default:
		p.wrap("plain", &n.Left)
		p.wrap("plain", &n.Right)
		if n.Operator == "contains" || n.Operator == "matches" {
			p.countReading(&n.Left)
		}
	}
}

// builtin makes one of expr's own functions count what it reads, and replaces it if one of ours takes its place.
func (p *patcher) builtin(node *ast.Node, n *ast.BuiltinNode) {
	p.plainArguments(n)
	p.countArguments(n)
	switch {
	case makers[n.Name] != nil:
		p.replace(node, n.Name, append([]ast.Node{p.evaluation()}, n.Arguments...)...)
	case substitutes[n.Name] != nil:
		p.replace(node, n.Name, n.Arguments...)
	case n.Name == "sum":
		p.sum(node, n)
	case n.Name == "findLast", n.Name == "findLastIndex":
		p.backwards(node, n)
	}
}

// plainArguments makes the arguments of expr's own functions plain. It leaves those that become members of a list or map, or whose types are
// shown.
func (p *patcher) plainArguments(n *ast.BuiltinNode) {
	if substitutes[n.Name] != nil {
		return
	}
	switch n.Name {
	case "string", "map", "find", "findLast", "reduce", "type", "toJSON", "first", "last", "take", "keys", "values",
		"toPairs", "fromPairs", "reverse", "concat", "flatten":
		return
	case "len":
		p.wrap("plain", &n.Arguments[0])
		return
	case "split", "splitAfter", "replace", "repeat":
		for i := range n.Arguments {
			p.wrap("index", &n.Arguments[i])
		}
		return
	}
	if len(n.Arguments) > 1 {
		if each, ok := n.Arguments[1].(*ast.PredicateNode); ok { // the elements of the list stay as they are
			p.wrap("plain", &each.Node)
			return
		}
	}
	for i := range n.Arguments {
		p.wrap("list", &n.Arguments[i])
	}
}

// wrap makes the value of a node the argument of one of our functions, unless the node is a constant.
func (p *patcher) wrap(fn string, node *ast.Node) {
	if !isConstant(*node) {
		p.replace(node, fn, *node)
	}
}

// isConstant reports whether a node is a constant, or absent.
func isConstant(node ast.Node) bool {
	switch node.(type) {
	case nil, *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return true
	}
	return false
}

// replace replaces node by a call of one of our functions.
func (p *patcher) replace(node *ast.Node, fn string, args ...ast.Node) {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: "$" + fn}, Arguments: args}
	ast.Patch(node, call)
	p.done[call] = true
}
