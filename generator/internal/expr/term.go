package expr

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// term is a checked part of an expression. It writes its own Go code.
type term struct {
	node    ast.Node
	typ     types.Type // types.Typ[types.UntypedNil] for nil
	con     any        // the value of a constant: an int, a float64, a string or a bool
	lit     bool       // it is an untyped constant of Go
	spelled bool       // it is a literal, not a named constant

	write  func(*writer) operand // the code panics if a part that is needed is nil
	choose func(*writer) string  // in place of write: statements that return one of several values

	op       token.Token // the operator of Go between the operands, if write writes one
	operands []*term

	isMethod bool    // it must be called
	links    []*term // the parts of an optional chain: if one of them is nil, so is the value
	ended    bool    // a member of it belongs to no optional chain
	pointer  *term   // the pointer that it is the target of; else nil
	items    []*term // the elements of a list literal
	orEmpty  *term   // an identity that is "" where the context carries none; else nil
	neverNil bool    // it is a pointer that is never nil
	global   bool    // it is a variable of a package

	closure *closure // computed for each element of a list; else nil
	body    *term    // of the closure
}

// compiler checks one expression.
type compiler struct {
	expr   annotations.Text
	env    *Env
	wanted Want
	errs   annotations.Diagnostics
	lets   map[string]*term // the variables that the expression declares
	varies bool             // the expression uses a parameter

	parts int // of the tree: a chain of comparisons has its inner operands in the tree twice
	depth int // of the part that is being checked

	closures []*closure // that are being checked, the innermost last
	loops    int        // that run the part that is being checked

	declared int // how many variables the expression has declared so far

	root    ast.Node
	inexact map[ast.Node]bool // the sums of floats, which depend on their order
}

// term lowers n, within the limits of a tree. It returns nil after an error.
func (c *compiler) term(n ast.Node) *term {
	c.parts++
	c.depth++
	defer func() { c.depth-- }()
	switch {
	case c.parts > maxParts:
		return nil
	case c.parts == maxParts || c.depth > maxDepth:
		c.parts = maxParts // the other parts are not checked
		return c.errorf(n, "the expression has too many parts")
	}
	return c.valid(n, c.lower(n))
}

func (c *compiler) lower(n ast.Node) *term {
	switch n := n.(type) {
	case *ast.NilNode:
		return c.word(n, nil)
	case *ast.BoolNode:
		return c.word(n, n.Value)
	case *ast.IntegerNode:
		return literal(n, n.Value)
	case *ast.FloatNode:
		return literal(n, n.Value)
	case *ast.StringNode:
		return literal(n, n.Value)
	case *ast.BytesNode:
		return c.bytes(n)
	case *ast.IdentifierNode:
		return c.name(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n, c.term)
	case *ast.ChainNode:
		return c.chain(n)
	case *ast.MemberNode:
		t := c.member(n)
		if t != nil && t.isMethod {
			return c.errorf(n.Property, "%s is a function; call it: %[1]s(...)", n.String())
		}
		return t
	case *ast.SliceNode:
		return c.slice(n)
	case *ast.CallNode:
		return c.call(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.VariableDeclaratorNode:
		return c.let(n, c.term)
	case *ast.SequenceNode:
		return c.errorf(n.Nodes[0], "the value of all but the last expression is unused")
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.MapNode:
		return c.mapping(n)
	case *ast.PointerNode:
		return c.pointer(n)
	}
	return c.errorf(n, "this cannot be used here")
}

// terms lowers nodes. If one of them has an error, ok is false.
func (c *compiler) terms(nodes []ast.Node) (list []*term, ok bool) {
	ok = true
	for _, n := range nodes {
		t := c.term(n)
		list = append(list, t)
		ok = ok && t != nil
	}
	return list, ok
}

// word lowers nil, true or false. It is an error if the word is also the name of a parameter or of the receiver.
func (c *compiler) word(n ast.Node, v any) *term {
	if name := n.String(); c.env.index(name) >= 0 {
		return c.errorf(n, "%s is expr's own word; %s", name, spelling(name))
	}
	return literal(n, v)
}

// spelling returns advice about a variable of the method whose name is a keyword of expr.
func spelling(name string) string { return "give your " + name + " another name" }

// literal returns the term for a literal or for the result of fold.
func literal(n ast.Node, v any) *term {
	words := spelled(v)
	t := &term{node: n, typ: defaultType(v), con: v, lit: true, spelled: true}
	if i, ok := v.(int); ok && int(int32(i)) != i { // an int may have 32 bits
		t.typ = types.Typ[types.Int64]
	}
	t.write = func(w *writer) operand {
		if isBool(t.typ) || v == nil {
			return primary(w.word(words))
		}
		o := primary(words)
		if words[0] == '-' {
			o.prec = unary
		}
		return o
	}
	return t
}

// defaultType returns the type of a Go variable that is initialized with a literal.
func defaultType(v any) types.Type {
	if t := types.Universe.Lookup(fmt.Sprintf("%T", v)); t != nil {
		return t.Type()
	}
	return types.Typ[types.UntypedNil]
}

// spelled returns the text of a constant in Go and expr. A float always has a decimal point or an exponent. For example:
//
//	1.0
func spelled(v any) string {
	f, ok := v.(float64)
	switch {
	case v == nil:
		return "nil"
	case !ok:
		return fmt.Sprintf("%#v", v)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// folded are the operators that fold computes.
var folded = map[string]token.Token{
	"+": token.ADD, "-": token.SUB, "*": token.MUL, "/": token.QUO, "%": token.REM,
	"==": token.EQL, "!=": token.NEQ, "<": token.LSS, "<=": token.LEQ, ">": token.GTR, ">=": token.GEQ,
}

// fold computes an operator if its operands are literals of one kind. If they are not, done is false.
func (c *compiler) fold(n ast.Node, name string, operands ...*term) (t *term, done bool) {
	op, ok := folded[name]
	if x, y, isPower := powerOf(name, operands); isPower {
		return c.result(n, constant.MakeFloat64(math.Pow(x, y)))
	} else if !ok {
		return nil, false
	}
	values := make([]constant.Value, len(operands))
	for i, o := range operands {
		if !o.lit || o.con == nil || isBool(o.typ) {
			return nil, false
		}
		values[i] = constantOf(o.con, isFloat(operands[0].typ) || isFloat(operands[len(operands)-1].typ) || op == token.QUO)
	}
	switch x := values[0]; {
	case len(values) == 1 && isText(operands[0].typ), len(values) == 2 && x.Kind() != values[1].Kind():
		return nil, false
	case len(values) == 1:
		return c.result(n, constant.UnaryOp(op, x, 0))
	case op.Precedence() == token.EQL.Precedence():
		return literal(n, constant.Compare(x, op, values[1])), true
	case isText(operands[0].typ):
		return literal(n, constant.StringVal(x)+constant.StringVal(values[1])), op == token.ADD
	case (op == token.QUO || op == token.REM) && constant.Sign(values[1]) == 0:
		return c.errorf(n, "division by zero"), true
	case op == token.REM && x.Kind() == constant.Float:
		return nil, false
	default:
		return c.result(n, constant.BinaryOp(x, op, values[1]))
	}
}

// powerOf returns the operands of ** or ^ if they are literals.
func powerOf(name string, operands []*term) (x, y float64, ok bool) {
	if name != "**" && name != "^" || !operands[0].lit || !operands[1].lit {
		return 0, 0, false
	}
	return operands[0].to(fraction).con.(float64), operands[1].to(fraction).con.(float64), true
}

// constantOf returns a value for package constant.
func constantOf(v any, asFloat bool) constant.Value {
	switch v := v.(type) {
	case int:
		if asFloat {
			return constant.ToFloat(constant.MakeFloat64(float64(v)))
		}
		return constant.MakeInt64(int64(v))
	case float64:
		return constant.ToFloat(constant.MakeFloat64(v))
	case string:
		return constant.MakeString(v)
	case bool:
		return constant.MakeBool(v)
	}
	return constant.MakeUnknown()
}

// result returns the term for a number that fold has computed.
func (c *compiler) result(n ast.Node, v constant.Value) (t *term, done bool) {
	if v.Kind() == constant.Int {
		i, exact := constant.Int64Val(v)
		if !exact {
			return c.errorf(n, "%s overflows", n.String()), true
		}
		return literal(n, int(i)), true
	}
	f, _ := constant.Float64Val(v)
	if math.IsInf(f, 0) || v.Kind() == constant.Unknown { // package constant has no infinities
		return c.errorf(n, "the result is not a finite number"), true
	}
	return literal(n, f), true
}
