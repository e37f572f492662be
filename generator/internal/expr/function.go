package expr

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

var (
	text     = types.Typ[types.String]
	whole    = types.Typ[types.Int]
	truth    = types.Typ[types.Bool]
	anything = types.Universe.Lookup("any").Type()
)

// builtin lowers a call of a function of expr.
func (c *compiler) builtin(n *ast.BuiltinNode) *term {
	args := make([]*term, len(n.Arguments))
	for i, a := range n.Arguments {
		if body, ok := a.(*ast.PredicateNode); !ok {
			args[i] = c.valueOf(a)
		} else if args[0] != nil {
			args[i] = c.body(n, body, args[0].typ)
		}
	}
	if slices.Contains(args, nil) {
		return nil
	}
	return c.apply(n, n.Name, args...)
}

// apply lowers a function or an operator.
func (c *compiler) apply(n ast.Node, name string, args ...*term) *term {
	d, result, wrong := choose(functions()[name], args)
	switch {
	case result == nil:
		return c.misfit(n, name, args, wrong)
	case name == "repeat" && args[1].con == nil:
		return c.errorf(start(args[1].node), "repeat needs a constant count: a caller could make the text any length")
	case name == "matches" && !c.isPattern(args[1]):
		return nil
	}
	if t, done := c.fold(n, name, args...); done {
		return t
	}
	if !slices.ContainsFunc(args, func(t *term) bool { return isAny(t.typ) }) {
		before := len(c.errs)
		if t := c.inGo(n, d.goName, result, args); t != nil || len(c.errs) > before {
			return t
		}
	}
	if _, orNil := d.Results().At(0).Type().(*types.Pointer); orNil {
		return c.maybeNil(n, pointee(result))
	}
	return c.onMachine(n, result)
}

// misfit reports that an operator or a function does not take these arguments. The index of the wrong argument is -1 if their
// number is wrong.
func (c *compiler) misfit(n ast.Node, name string, args []*term, wrong int) *term {
	switch n := n.(type) {
	case *ast.BinaryNode:
		return c.mixed(n, args[0], args[1])
	case *ast.UnaryNode:
		return c.errorf(n, "%s cannot be used with %s", name, c.a(args[0].typ))
	case *ast.BuiltinNode:
		if wrong < 0 {
			break
		}
		if _, ok := n.Arguments[wrong].(*ast.PredicateNode); ok {
			wanted := "bool"
			if name == "sum" {
				wanted = "number"
			}
			return c.errorf(start(args[wrong].node), "%s needs a %s here; this is %s", name, wanted, c.a(args[wrong].typ))
		}
		return c.errorf(start(args[wrong].node), "%s cannot be used with %s", name, c.a(args[wrong].typ))
	}
	return c.errorf(n, "wrong number of arguments for %s: %d", name, len(args))
}

// inGo lowers a function or an operator to what gives the same result in Go. It returns nil if nothing does, and after an error.
func (c *compiler) inGo(n ast.Node, goName string, result types.Type, args []*term) *term {
	switch goName {
	case "string":
		return c.string(n, args[0]).resultOf(n)
	case "int":
		return args[0].integer(arithmeticKind(args[0])).resultOf(n)
	case "min", "max":
		return c.extreme(n, goName, args)
	case "!":
		return c.not(n, args[0].as(types.Bool))
	case "+":
		return infix(n, text, token.ADD, texts(args)...)
	case "<", "<=", ">", ">=":
		return c.order(n.(*ast.BinaryNode), args[0], args[1])
	case "checked.Negate":
		t := args[0].unnamed()
		return checked(n, t.typ, "Negate", t)
	case "checked.Replace":
		return checked(n, text, "Replace", texts(args)...)
	case "checked.Add", "checked.Subtract", "checked.Multiply", "checked.Remainder":
		return c.integers(n, strings.TrimPrefix(goName, "checked."), args[0], args[1])
	}
	_, isOperator := n.(*ast.BinaryNode)
	if goName == "" || isOperator && mayBeNil(args...) || pointee(args[0].typ) != nil {
		return nil
	}
	dot := strings.LastIndex(goName, ".")
	return goCall(n, result, goName[:max(dot, 0)], goName[dot+1:], texts(args)...)
}

// extreme lowers min and max of integers of one type.
func (c *compiler) extreme(n ast.Node, name string, args []*term) *term {
	for i, t := range args {
		args[i] = t.unnamed()
	}
	met := c.meet(n, args)
	if len(met) < len(args) {
		return nil
	}
	return goCall(n, met[0].typ, "", name, met...)
}

// goCall returns a call of a Go function. The path of a predeclared function is "".
func goCall(n ast.Node, t types.Type, path, fn string, args ...*term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand { return w.callOf(w.std(path, fn), w.all(args...)...) }}
}

// texts returns terms with each text in the type string.
func texts(terms []*term) []*term {
	all := slices.Clone(terms)
	for i, t := range terms {
		if isText(t.typ) {
			all[i] = t.as(types.String)
		}
	}
	return all
}

// itemOf returns the type of the elements of a list or a map, or any if t may be one.
func itemOf(t types.Type) types.Type {
	if elem := elemOf(t); elem != nil {
		return elem
	}
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Elem()
	}
	return anything
}

// closure is an expression that is computed for each element of a list, which it calls #.
type closure struct {
	item types.Type
	name string // the name of the function
}

// body checks the expression that a function computes for each element of a list.
func (c *compiler) body(n *ast.BuiltinNode, body *ast.PredicateNode, list types.Type) *term {
	c.closures = append(c.closures, closure{itemOf(list), n.Name})
	t := c.term(body.Node)
	c.closures = c.closures[:len(c.closures)-1]
	c.machine = true
	if t != nil && isNil(t.typ) {
		return c.errorf(start(body.Node), "nil has no type here")
	}
	return t
}

// pointer lowers #, #index or #acc.
func (c *compiler) pointer(n *ast.PointerNode) *term {
	scope := c.closures[len(c.closures)-1]
	typ := scope.item
	switch {
	case n.Name == "":
	case n.Name == "index" && (scope.name == "map" || scope.name == "reduce"):
		typ = whole
	case n.Name == "acc" && scope.name == "reduce":
		typ = anything
	default:
		return c.errorf(n, "there is no #%s here", n.Name)
	}
	return c.onMachine(n, typ)
}
