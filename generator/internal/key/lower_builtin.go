package key

import (
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// A builtin is one of expr's functions that is more than a function of the standard library.
type builtin struct {
	least, most int
	lower       func(c *compiler, n *ast.BuiltinNode, args []*term) *term
}

var builtins = map[string]builtin{
	"len":     {1, 1, (*compiler).length},
	"string":  {1, 1, (*compiler).toText},
	"int":     {1, 1, (*compiler).toInt},
	"float":   {1, 1, (*compiler).toFloat},
	"abs":     {1, 1, (*compiler).abs},
	"min":     {1, 100, (*compiler).extreme},
	"max":     {1, 100, (*compiler).extreme},
	"ceil":    {1, 1, (*compiler).rounded},
	"floor":   {1, 1, (*compiler).rounded},
	"round":   {1, 1, (*compiler).rounded},
	"bitand":  {2, 2, (*compiler).bitwise},
	"bitor":   {2, 2, (*compiler).bitwise},
	"bitxor":  {2, 2, (*compiler).bitwise},
	"bitnand": {2, 2, (*compiler).bitwise},
	"bitnot":  {1, 1, (*compiler).bitwise},
	"bitshl":  {2, 2, (*compiler).shift},
	"bitshr":  {2, 2, (*compiler).shift},
	"bitushr": {2, 2, (*compiler).shift},
}

func (c *compiler) builtin(n *ast.BuiltinNode) *term {
	if p, ok := predicates[n.Name]; ok {
		return c.predicate(n, p)
	}
	if f, ok := machineFunctions[n.Name]; ok {
		return c.machineFunction(n, f)
	}
	b, ok := builtins[n.Name]
	if !ok {
		return c.textFunction(n)
	}
	args, ok := c.terms(n.Arguments)
	if given := len(args); given < b.least || given > b.most {
		return c.errorf(n, "%s takes %s, not %d", n.Name, count(b.least, b.most > b.least, "argument"), given)
	}
	if !ok {
		return nil
	}
	for i := range args {
		if args[i] = args[i].value(); isAny(args[i].typ) || aggregates[n.Name] && isList(args[i].typ) {
			return c.onMachine(n, c.machineResult(n.Name, args))
		}
	}
	t := b.lower(c, n, args)
	if t != nil && t.src == "" {
		t.src = called(n.Name, args)
	}
	return t
}

// refuse says that a function does not take t.
func (c *compiler) refuse(n *ast.BuiltinNode, t *term) *term {
	return c.errorf(start(t.node), "%s cannot be used with %s", n.Name, c.a(t.typ))
}

func (c *compiler) length(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	if isText(t.typ) {
		return call(n, types.Typ[types.Int], "unicode/utf8", "RuneCountInString", t.asText())
	}
	switch aggregate(t.typ).(type) {
	case *types.Map, *types.Slice, *types.Array:
		return &term{node: n, typ: types.Typ[types.Int], hint: "n", emit: func(w *writer) operand {
			o := w.pointed(t, false)
			return o.from("len(" + o.text + ")")
		}}
	}
	return c.refuse(n, t)
}

func (c *compiler) toInt(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	switch v := t.con.(type) {
	case int:
		return t.asInt()
	case float64:
		return literal(n, int(v))
	}
	switch {
	case isNumber(t.typ):
		return t.plainly().asInt()
	case isText(t.typ):
		return parsed(n, types.Typ[types.Int], t.asText(), "Atoi", "")
	}
	return c.refuse(n, t)
}

func (c *compiler) toFloat(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	switch {
	case t.con != nil && isNumber(t.typ):
		return literal(n, float(t.con))
	case isNumber(t.typ):
		return t.plainly().asFloat()
	case isText(t.typ):
		return parsed(n, types.Typ[types.Float64], t.asText(), "ParseFloat", ", 64")
	}
	return c.refuse(n, t)
}

// plainly is t where it must be there.
func (t *term) plainly() *term {
	v := *t
	v.try, v.src = nil, ""
	v.emit = func(w *writer) operand { return t.emit(w) }
	return &v
}

// parsed reads a number from a text.
func parsed(n ast.Node, to types.Type, t *term, fn, more string) *term {
	return &term{node: n, typ: to, hint: "n", emit: func(w *writer) operand {
		o := t.emit(w)
		v, err := w.local("n"), w.local("err")
		w.add(v + ", " + err + " := " + w.std("strconv", fn) + "(" + o.text + more + ")")
		w.failErr(err)
		return variable(v)
	}}
}

func (c *compiler) abs(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	switch v := t.con.(type) {
	case int:
		return literal(n, max(v, -v))
	case float64:
		if v < 0 { // not so -0, which expr keeps
			v = -v
		}
		return literal(n, v)
	}
	if !isNumber(t.typ) {
		return c.refuse(n, t)
	}
	if t.mixed {
		return c.onMachine(n, t.typ)
	}
	if is(t.typ, types.IsUnsigned) {
		return t.plainly()
	}
	return &term{node: n, typ: t.typ, hint: "n", emit: func(w *writer) operand {
		o := w.define("n", t.emit(w))
		w.add("if " + o.text + " < 0 {" + indented([]string{o.text + " = -" + o.text}) + "}")
		return o
	}}
}

// extreme lowers min and max.
func (c *compiler) extreme(n *ast.BuiltinNode, args []*term) *term {
	for _, t := range args {
		if !isNumber(t.typ) {
			return c.refuse(n, t)
		}
	}
	met := c.meet(n, args)
	if met == nil {
		return nil
	}
	to := met[0].typ
	many := mixed(args, to)
	if isInt(to) && !wide(to) {
		return &term{node: n, typ: to, hint: "n", mixed: many, emit: func(w *writer) operand { return w.callOf(n.Name, w.all(met...)) }}
	}
	// Of floats, and of what is too great for an int, expr keeps the one that no later one beats.
	op := map[string]string{"min": "<", "max": ">"}[n.Name]
	return &term{node: n, typ: to, hint: "n", mixed: many, emit: func(w *writer) operand {
		ops := w.all(met...)
		best := w.define("n", ops[0].typed(w, met[0]))
		for _, o := range ops[1:] {
			o = w.twice("other", o)
			cond := o.text + " " + op + " " + best.text
			if wide(to) {
				cond = "int(" + o.text + ") " + op + " int(" + best.text + ")"
			}
			w.add("if " + cond + " {" + indented([]string{best.text + " = " + o.text}) + "}")
		}
		return best
	}}
}

// callOf writes a call of one of Go's own functions.
func (w *writer) callOf(fn string, args []operand) operand {
	o := operand{prec: highest, stable: true}
	for i, a := range args {
		if i > 0 {
			o.text += ", "
		}
		o.text += a.text
		o.calls = o.calls || a.calls
		o.stable = o.stable && a.stable
	}
	o.text = fn + "(" + o.text + ")"
	return o
}

func (c *compiler) rounded(n *ast.BuiltinNode, args []*term) *term {
	if !isNumber(args[0].typ) {
		return c.refuse(n, args[0])
	}
	fn := map[string]string{"ceil": "Ceil", "floor": "Floor", "round": "Round"}[n.Name]
	return call(n, types.Typ[types.Float64], "math", fn, args[0].asFloat())
}
