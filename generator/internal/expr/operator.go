package expr

import (
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) unary(n *ast.UnaryNode) *term {
	t := c.term(n.Node)
	if t == nil {
		return nil
	}
	t = t.value()
	if v, done := c.fold(n, t); done {
		return v
	}
	switch {
	case isAny(t.typ) && (n.Operator == "+" || n.Operator == "-"):
		return c.onMachine(n, anything)
	case isAny(t.typ):
		return c.onMachine(n, truth)
	case (n.Operator == "!" || n.Operator == "not") && isBool(t.typ):
		return c.not(n, t.as(types.Bool))
	case n.Operator == "+" && isNumber(t.typ):
		return t
	case n.Operator == "-" && isInt(t.typ):
		return checked(n, t.typ, "Negate", t)
	case n.Operator == "-" && isNumber(t.typ):
		return &term{node: n, typ: t.typ, write: func(w *writer) operand {
			o := w.term(t)
			return operand{text: "-" + o.in(highest), prec: unary, calls: o.calls, stable: o.stable}
		}}
	}
	return c.errorf(n, "%s cannot be used with %s", n.Operator, c.a(t.typ))
}

// binary lowers an operator by its family.
func (c *compiler) binary(n *ast.BinaryNode) *term {
	switch n.Operator {
	case "&&", "and":
		return c.logic(n, token.LAND)
	case "||", "or":
		return c.logic(n, token.LOR)
	case "??":
		return c.coalesce(n, c.valueOf, c.valueOf)
	case "in":
		return c.in(n)
	}
	l, r := c.term(n.Left), c.term(n.Right)
	if l == nil || r == nil {
		return nil
	}
	if v, done := c.fold(n, l.value(), r.value()); done {
		return v
	}
	switch {
	case l.gone || r.gone:
		return c.unequal(n, l, r)
	case n.Operator == "==" || n.Operator == "!=":
		return c.equal(n, l, r)
	}
	return c.operator(n, l.value(), r.value())
}

// operators look at the types of both operands, as functions do, before they compute.
var operators = map[string]function{
	"contains": {"ss", "b", "Contains"}, "startsWith": {"ss", "b", "HasPrefix"}, "endsWith": {"ss", "b", "HasSuffix"},
	"matches": {"ss", "b", ""}, "..": {"nn", "I", ""}, "**": {"qq", "f", ""}, "^": {"qq", "f", ""},
	"<": {"qq ss cc", "b", ""}, "<=": {"qq ss cc", "b", ""}, ">": {"qq ss cc", "b", ""}, ">=": {"qq ss cc", "b", ""},
	"+": {"ss ii rr dd cd dc", "snf112", ""}, "-": {"ii rr dd cd cc", "nf11a", ""}, "*": {"ii rr dd di id", "nf112", ""},
	"/": {"rr", "f", ""}, "%": {"ii", "n", ""},
}

func (c *compiler) operator(n *ast.BinaryNode, l, r *term) *term {
	f, args := operators[n.Operator], []*term{l, r}
	form, _ := f.form(args)
	if form < 0 {
		return c.mixed(n, l, r)
	}
	switch takes, op := strings.Fields(f.takes)[form], signs[n.Operator]; {
	case n.Operator == "matches" && !c.isPattern(n.Right, r):
		return nil
	case isAny(l.typ) || isAny(r.typ):
	case f.goes != "" && !l.optional() && !r.optional():
		return goCall(n, truth, "strings", f.goes, texts(args)...)
	case comparisons[n.Operator] != 0:
		return c.order(n, l, r)
	case takes == "ss" && op != 0:
		return infix(n, text, op, l.as(types.String), r.as(types.String))
	case takes == "ii":
		return c.integers(n, l, r)
	case takes == "rr":
		return infix(n, types.Typ[types.Float64], op, l.as(types.Float64), r.as(types.Float64))
	}
	return c.onMachine(n, f.result(form, args))
}

// signs are the operators of arithmetic in Go.
var signs = map[string]token.Token{"+": token.ADD, "-": token.SUB, "*": token.MUL, "/": token.QUO}

// isPattern reports whether t, the meaning of n, is a constant regular expression. A pattern that a caller sends could take any time.
func (c *compiler) isPattern(n ast.Node, t *term) bool {
	pattern, ok := t.con.(string)
	if !ok {
		c.errorf(start(n), "matches needs a constant pattern")
		return false
	}
	_, err := regexp.Compile(pattern)
	if err != nil {
		c.errorf(start(n), "%v", err)
	}
	return err == nil
}

func (c *compiler) mixed(n *ast.BinaryNode, l, r *term) *term {
	return c.errorf(n, "%s cannot be used with %s and %s", n.Operator, c.typeName(l.typ), c.typeName(r.typ))
}

// infix writes a binary operator.
func infix(n ast.Node, t types.Type, op token.Token, l, r *term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand {
		o := w.all(l, r)
		return join(op, o[0], o[1])
	}}
}

func join(op token.Token, l, r operand) operand {
	p := op.Precedence()
	return operand{
		text: l.in(p) + " " + op.String() + " " + r.in(p+1), prec: p,
		calls: l.calls || r.calls, stable: l.stable && r.stable,
	}
}

// arithmeticKind is the type in which integers meet: an int if all of them fit one on any machine, else an int64.
func arithmeticKind(terms ...*term) types.BasicKind {
	for _, t := range terms {
		if !t.fits(whole) && !holds(whole, t.typ) {
			return types.Int64
		}
	}
	return types.Int
}

// integers is an operator on integers, whose result may not fit.
func (c *compiler) integers(n *ast.BinaryNode, l, r *term) *term {
	if n.Operator == "%" && r.con == 0 {
		return c.errorf(start(n.Right), "division by zero")
	}
	if n.Operator == "%" && wide(l.typ) {
		return c.onMachine(n, whole) // which takes what is too great for an int64
	}
	kind := arithmeticKind(l, r)
	l, r = l.integer(kind), r.integer(kind)
	if n.Operator == "%" && r.con != nil {
		return infix(n, types.Typ[kind], token.REM, l, r)
	}
	fn := map[string]string{"+": "Add", "-": "Subtract", "*": "Multiply", "%": "Remainder"}[n.Operator]
	return checked(n, types.Typ[kind], fn, l, r)
}
