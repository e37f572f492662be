package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// disorder says what the random order of a map's elements does to a value.
type disorder int

const (
	ordered  disorder = iota // nothing: equal maps give the same value
	shuffled                 // it is a list in random order
	random                   // it may differ from call to call
)

// orderings are functions whose result does not depend on the order of a list.
var orderings = map[string]bool{
	"sort": true, "len": true, "count": true, "sum": true, "all": true, "any": true, "none": true, "one": true,
	"min": true, "max": true, "mean": true, "median": true,
}

// shufflers are functions that give a list in the order of their argument.
var shufflers = map[string]bool{
	"sortBy": true, "map": true, "filter": true, "concat": true, "flatten": true, "uniq": true, "reverse": true, "keys": true, "values": true, "toPairs": true,
}

// checkOrder reports a key that depends on the random order of a map: one caller would have many budgets.
func (c *compiler) checkOrder() {
	o := &orderOf{lets: map[string]disorder{}, inexact: c.inexact}
	if o.of(c.root) == ordered {
		return
	}
	sorted := "sort(" + o.culprit.String() + ")"
	if o.culprit.Name == "toPairs" {
		sorted = "sortBy(" + o.culprit.String() + ", string(#[0]))"
	}
	c.errorf(o.culprit, "the order of a map is random, so equal calls would have different keys; write %s", sorted)
}

// orderOf finds the parts of an expression whose values depend on the random order of a map.
type orderOf struct {
	lets    map[string]disorder
	inexact map[ast.Node]bool
	culprit *ast.BuiltinNode // the last call of keys, values or toPairs whose order matters
}

func (o *orderOf) of(n ast.Node) disorder {
	switch n := n.(type) {
	case *ast.BuiltinNode:
		return o.builtin(n)
	case *ast.IdentifierNode:
		return o.lets[n.Value]
	case *ast.VariableDeclaratorNode:
		o.lets[n.Name] = o.of(n.Value)
		return o.of(n.Expr)
	case *ast.ConditionalNode:
		if o.of(n.Cond) == ordered {
			return max(o.of(n.Exp1), o.of(n.Exp2))
		}
		return random
	case *ast.BinaryNode:
		switch n.Operator {
		case "in":
			return o.reduced(n.Left, n.Right)
		case "??":
			return max(o.of(n.Left), o.of(n.Right))
		}
	}
	for _, part := range children(n) {
		if o.of(part) != ordered {
			return random
		}
	}
	return ordered
}

func (o *orderOf) builtin(n *ast.BuiltinNode) disorder {
	if orderings[n.Name] || n.Name == "sortBy" && byElement(n.Arguments[1]) {
		if of := o.reduced(n.Arguments...); of != ordered || !o.inexact[n] || o.of(n.Arguments[0]) == ordered {
			return of
		}
		return random
	}
	worst := ordered
	for _, a := range n.Arguments {
		worst = max(worst, o.of(a))
	}
	switch {
	case worst == random:
	case n.Name == "keys" || n.Name == "values" || n.Name == "toPairs":
		o.culprit = n
		return shuffled
	case worst == ordered || shufflers[n.Name]:
		return worst
	}
	return random
}

// byElement reports whether a sort by this has one order: by the elements, or by the keys of pairs.
func byElement(key ast.Node) bool {
	body, ok := key.(*ast.PredicateNode)
	return ok && (body.Node.String() == "#" || body.Node.String() == "string(#[0])")
}

// reduced returns what the order does to a value that depends on which elements lists have, not on their order.
func (o *orderOf) reduced(nodes ...ast.Node) disorder {
	before := o.culprit
	for _, n := range nodes {
		if o.of(n) == random {
			return random
		}
	}
	o.culprit = before
	return ordered
}

// children returns the nodes that n consists of.
func children(n ast.Node) []ast.Node {
	var found []ast.Node
	switch n := n.(type) {
	case *ast.UnaryNode:
		found = []ast.Node{n.Node}
	case *ast.BinaryNode:
		found = []ast.Node{n.Left, n.Right}
	case *ast.ChainNode:
		found = []ast.Node{n.Node}
	case *ast.MemberNode:
		found = []ast.Node{n.Node, n.Property}
	case *ast.SliceNode:
		found = []ast.Node{n.Node, n.From, n.To}
	case *ast.CallNode:
		found = append([]ast.Node{n.Callee}, n.Arguments...)
	case *ast.PredicateNode:
		found = []ast.Node{n.Node}
	case *ast.ArrayNode:
		found = n.Nodes
	case *ast.MapNode:
		found = n.Pairs
	case *ast.PairNode:
		found = []ast.Node{n.Key, n.Value}
	}
	return slices.DeleteFunc(found, func(n ast.Node) bool { return n == nil })
}
