package expr

import (
	"go/token"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) bitwise(n *ast.BuiltinNode, args []*term) *term {
	for _, t := range args {
		if !isInt(t.typ) {
			return c.refuse(n, t)
		}
	}
	if v, ok := foldBits(n.Name, args); ok {
		return literal(n, v)
	}
	return &term{node: n, typ: whole, hint: "n", emit: func(w *writer) operand {
		if n.Name == "bitnot" {
			o := args[0].asInt().emit(w)
			return operand{text: "^" + o.in(unary), prec: unary, calls: o.calls, stable: o.stable}
		}
		o := w.all(args[0].asInt(), args[1].asInt())
		return bits2(map[string]string{"bitand": "&", "bitor": "|", "bitxor": "^", "bitnand": "&^"}[n.Name], o[0], o[1])
	}}
}

// foldBits computes what Go would compute exactly, and so might find too large.
func foldBits(name string, args []*term) (v int, ok bool) {
	a, ok := args[0].con.(int)
	if name == "bitnot" || !ok {
		return ^a, ok
	}
	b, ok := args[1].con.(int)
	if !ok {
		return 0, false
	}
	switch name {
	case "bitand":
		return a & b, true
	case "bitor":
		return a | b, true
	case "bitxor":
		return a ^ b, true
	case "bitnand":
		return a &^ b, true
	case "bitshl":
		return a << b, true
	case "bitshr":
		return a >> b, true
	}
	return int(uint(a) >> b), true
}

// bits2 writes an operator on bits. As an operand it gets parentheses in any case, which spare the reader Go's precedences: they
// differ from C's.
func bits2(op string, l, r operand) operand {
	return operand{
		text: l.in(unary) + " " + op + " " + r.in(unary), prec: token.LowestPrec,
		calls: l.calls || r.calls, stable: l.stable && r.stable,
	}
}

// shift lowers bitshl, bitshr and bitushr, which fills with zeros.
func (c *compiler) shift(n *ast.BuiltinNode, args []*term) *term {
	for _, t := range args {
		if !isInt(t.typ) {
			return c.refuse(n, t)
		}
	}
	by, fixed := args[1].con.(int)
	if fixed && by < 0 {
		return c.errorf(start(n.Arguments[1]), "the shift is negative")
	}
	if v, ok := foldBits(n.Name, args); ok {
		if n.Name == "bitshl" && v>>by != args[0].con.(int) {
			return c.errorf(n, "bitshl overflows an int")
		}
		return literal(n, v)
	}
	return &term{node: n, typ: whole, hint: "n", emit: func(w *writer) operand {
		o := w.then([]operand{args[0].variable(w)}, func(w *writer) operand {
			count := args[1].whole().emit(w)
			if !fixed {
				count = w.twice("shift", count)
				w.failIf(count.text+" < 0", "the shift is negative")
			}
			return count
		})
		switch n.Name {
		case "bitshl":
			o[0] = w.twice("n", o[0])
			shifted := w.define("shifted", join(token.SHL, o[0], o[1]))
			w.failIf(join(token.SHR, shifted, o[1]).text+" != "+o[0].text, called(n.Name, args)+" overflows")
			return shifted
		case "bitshr":
			return bits2(">>", o[0], o[1])
		}
		o[0] = o[0].from("uint(" + o[0].text + ")")
		return o[0].from("int(" + bits2(">>", o[0], o[1]).text + ")")
	}}
}

// variable writes t as an int that is no constant to Go, which would find its bits too many.
func (t *term) variable(w *writer) operand {
	o := t.asInt().emit(w)
	if t.con != nil && o.stable {
		return w.define("n", o)
	}
	return o
}
