package expr

import (
	"fmt"
	"go/types"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/runtime/exprvm"
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

	isMethod bool // it must be called

	// unchecked is the same value without the check for absence that write makes; nil if write makes none.
	unchecked *term
	identity  string // the function of package wrap that is called, without anything around it
	neverNil  bool   // it is a pointer that is never nil
	optional  bool   // it may be nil, although its type has no nil: a part of it may
	absent    bool   // it is nil, because the method has no such parameter
	decided   bool   // the parameters that the method has decide its value, or that it is not nil

	plain bool // it has no bytes to escape

	number bool // it is the text of an integer or of a bool
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

	lowered map[ast.Node]*term // the terms of all nodes that have been checked

	closures []closure // that are being checked, the innermost last
	machine  bool      // a part of the expression does not become Go
	values   []value   // the values that the expression uses
	hidden   []Hidden
	refusals annotations.Diagnostics // the errors if the machine has to run the expression

	identities []string // the functions of package wrap that it calls for an identity
	ofOthers   bool     // it asks for the identity in another context than that of the call

	instances map[string]types.Type // of the generic functions that it calls
	imported  map[string][]string   // the functions of imported packages that it calls, by the names of these
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
	t := c.valid(n, c.lower(n))
	c.lowered[n] = t
	return t
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
	case *ast.IdentifierNode:
		return c.name(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n, c.term)
	case *ast.ChainNode:
		return c.term(n.Node)
	case *ast.MemberNode:
		t := c.member(n)
		if t != nil && t.isMethod {
			return c.errorf(n.Property, "%s is a method; call it: %[1]s(...)", source(n))
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
	case *ast.BytesNode:
		return c.onMachine(n, types.NewSlice(types.Typ[types.Byte]))
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

// fold computes n on the machine if its operands are constants. If they are not, or if Go has no such constant as the result, done
// is false.
func (c *compiler) fold(n ast.Node, name string, operands ...*term) (t *term, done bool) {
	var names []string
	var values []any
	for i, o := range operands {
		if o.con == nil && !isNil(o.typ) || o.decided || c.machine || !types.Identical(types.Default(o.typ), literal(n, o.con).typ) {
			return nil, false
		}
		names, values = append(names, "v"+strconv.Itoa(i)), append(values, o.con)
	}
	source := "::" + name + "(" + strings.Join(names, ", ") + ")"
	if !isFunction(name) { // the operator is before the only operand, or between two
		source = strings.Join(slices.Insert(slices.Clone(names), len(names)-1, name), " ")
	}
	program := exprvm.New(source, names...)
	if len(operands) == 0 || program.Err() != nil {
		return nil, false
	}
	v, err := program.Value(values...)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "invalid operation"):
		return nil, false // the operation is not defined for these types
	default:
		return c.errorf(n, "%v", err), true
	}
	f, _ := v.(float64)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return c.errorf(n, "the result is not a finite number"), true
	}
	text, _ := v.(string)
	isMinusZero := f == 0 && math.Signbit(f)
	return literal(n, v), !isNil(defaultType(v)) && len(text) <= maxLength && !isMinusZero
}
