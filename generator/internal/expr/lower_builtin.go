package expr

import (
	"go/types"
	"math"
	"unicode/utf8"

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
	if s, ok := t.con.(string); ok && t.lit {
		return literal(n, utf8.RuneCountInString(s))
	}
	if isText(t.typ) {
		v := call(n, types.Typ[types.Int], "unicode/utf8", "RuneCountInString", t.asText())
		v.within = lengths(t.typ)
		return v
	}
	switch aggregate(t.typ).(type) {
	case *types.Map, *types.Slice, *types.Array:
		return &term{node: n, typ: types.Typ[types.Int], within: lengths(t.typ), hint: "n", emit: func(w *writer) operand {
			o := w.pointed(t, false)
			return o.from("len(" + o.text + ")")
		}}
	}
	return c.refuse(n, t)
}

// lengths are what a length can be, unless the elements of the list take no memory.
func lengths(t types.Type) *span {
	switch elem := elemOf(t); {
	case elem == nil || isBasic(elem) || nilable(elem):
		return &span{0, longest}
	}
	return &span{0, math.MaxInt64}
}

func (c *compiler) toInt(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	switch v := t.con.(type) {
	case int:
		return t.asInt()
	case float64:
		if !fitsInt(v) {
			return c.errorf(start(t.node), "this does not fit an int")
		}
		return literal(n, int(v))
	}
	switch {
	case isInt(t.typ):
		return t.whole().plainly()
	case isNumber(t.typ):
		return t.truncated()
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
		if v == math.MinInt {
			return c.errorf(start(t.node), "the opposite of this overflows an int")
		}
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
	v := &term{node: n, typ: t.typ, hint: "n", emit: func(w *writer) operand {
		o := w.define("n", t.emit(w))
		if isInt(t.typ) {
			o = w.opposite(t, o)
		}
		w.add("if " + o.text + " < 0 {" + indented([]string{o.text + " = -" + o.text}) + "}")
		return o
	}}
	if isInt(t.typ) {
		s := t.span()
		v.within = &span{0, max(s.greatest, -max(s.least, -math.MaxInt64))}
	}
	return v
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
	if isInt(to) {
		return &term{node: n, typ: to, within: outermost(n.Name, met), hint: "n", mixed: many, emit: func(w *writer) operand {
			return w.callOf(n.Name, w.all(met...))
		}}
	}
	// Of floats expr keeps the one that no later one beats.
	op := map[string]string{"min": "<", "max": ">"}[n.Name]
	return &term{node: n, typ: to, hint: "n", mixed: many, emit: func(w *writer) operand {
		ops := w.all(met...)
		best := w.define("n", ops[0].typed(w, met[0]))
		for _, o := range ops[1:] {
			o = w.twice("other", o)
			w.add("if " + o.text + " " + op + " " + best.text + " {" + indented([]string{best.text + " = " + o.text}) + "}")
		}
		return best
	}}
}

// outermost is what min or max of integers can be.
func outermost(name string, terms []*term) *span {
	pick := map[string]func(a, b int64) int64{
		"min": func(a, b int64) int64 { return min(a, b) }, "max": func(a, b int64) int64 { return max(a, b) },
	}[name]
	s := terms[0].span()
	for _, t := range terms[1:] {
		s = span{pick(s.least, t.span().least), pick(s.greatest, t.span().greatest)}
	}
	return &s
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
