package expr

import (
	"go/types"
	"math"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// term is a part of an expression that was found right, and knows how to write itself.
type term struct {
	node ast.Node
	typ  types.Type // types.Typ[types.UntypedNil] for nil
	con  any        // an int, a float64, a string or a bool, if it is constant
	// within says more than typ about the values of an integer, if it is known.
	within *span
	lit    bool   // its text is an untyped constant, that takes the type it meets
	src    string // the expression's own words for it, if they are few
	hint   string // what a variable for it is called

	emit func(*writer) operand
	// try writes a term that may turn out to be absent: it leaves w.exits where emit leaves the method.
	try func(*writer) operand
	// mixed reports that expr's value may be of another type than typ, which its sign, its absolute value and its text show.
	mixed bool
	// bare is the term without a check that emit makes.
	bare *term
	gone bool // it is nil, for the method has no such parameter
	sure bool // it is true or false by what parameters the method has

	// For a text in its stable form: the type it was made of, and whether it is free of bytes to be escaped.
	source types.Type
	plain  bool
}

// compiler checks one expression.
type compiler struct {
	expr annotations.Text
	env  *Env
	errs annotations.Errors
	lets []*let

	parts int              // of the tree, where what is in it twice counts twice
	size  map[ast.Node]int // in parts

	closures []closure // that are being checked, the innermost last
	machine  bool      // a part of the expression does not lower
	values   []value   // what the expression names
	hidden   []Hidden
	hiddenAt []ast.Node

	instances map[string]types.Type // of the generic functions that it calls
	again     []ast.Node            // calls of other instances

	seen map[any]*term // by node: a chain of comparisons has its inner operands in the tree twice
}

// term returns nil if there is something wrong with n, which then has been reported.
func (c *compiler) term(n ast.Node) *term {
	if t, ok := c.seen[n]; ok {
		if c.parts < math.MaxInt/2 {
			c.parts += c.size[n]
		}
		if t != nil {
			t.once()
		}
		return t
	}
	before := c.parts
	c.parts++
	t := c.lower(n)
	c.seen[n], c.size[n] = t, c.parts-before
	return t
}

// once makes a term that is written in two places compute its value in the first.
func (t *term) once() {
	emit := t.emit
	t.emit = func(w *writer) operand {
		o, ok := w.once[t]
		if !ok {
			o = w.twice(t.hint, emit(w))
			w.once[t] = o
		}
		return o
	}
}

func (c *compiler) lower(n ast.Node) *term {
	switch n := n.(type) {
	case *ast.NilNode:
		if c.reserved(n, "nil") {
			return nil
		}
		return &term{node: n, typ: types.Typ[types.UntypedNil], lit: true, src: "nil", emit: func(*writer) operand { return word("nil") }}
	case *ast.BoolNode:
		if c.reserved(n, strconv.FormatBool(n.Value)) {
			return nil
		}
		return literal(n, n.Value)
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
		return c.chain(n)
	case *ast.MemberNode:
		return c.member(n)
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

// terms lowers all of nodes; ok reports that none was wrong.
func (c *compiler) terms(nodes []ast.Node) (list []*term, ok bool) {
	ok = true
	for _, n := range nodes {
		t := c.term(n)
		list = append(list, t)
		ok = ok && t != nil
	}
	return list, ok
}

func word(text string) operand {
	return operand{text: text, prec: highest, stable: true, path: len(text) < 30}
}

// literal is a constant that the expression spells out or that folding gave.
func literal(n ast.Node, v any) *term {
	t := &term{node: n, con: v, lit: true}
	var text string
	switch v := v.(type) {
	case bool:
		t.typ, text = types.Typ[types.Bool], strconv.FormatBool(v)
	case int:
		t.typ, text = types.Typ[types.Int], strconv.Itoa(v)
	case float64:
		t.typ, text = types.Typ[types.Float64], floatText(v)
	case string:
		t.typ, text = types.Typ[types.String], strconv.Quote(v)
	}
	t.src = text
	if v == 0.0 && text[0] == '-' { // which Go has no literal for
		t.lit = false
	}
	t.emit = func(w *writer) operand {
		if !t.lit {
			return word(w.std("math", "Copysign") + "(0, -1)")
		}
		o := word(text)
		if text[0] == '-' {
			o.prec = unary
		}
		return o
	}
	return t
}

// floatText spells v so that it is a float also where nothing else says so.
func floatText(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	for _, r := range s {
		if r == '.' || r == 'e' {
			return s
		}
	}
	return s + ".0"
}
