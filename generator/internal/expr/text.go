package expr

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// want lowers the whole expression to what its place needs.
func (c *compiler) want(n ast.Node, want Want) *term {
	if want == Island {
		return c.island(n)
	}
	t := c.term(n)
	if t == nil {
		return nil
	}
	source := t.typ
	t = t.value()
	switch {
	case isAny(t.typ):
		if c.unfit(n, want) {
			return nil
		}
		t = c.onMachine(n, t.typ)
	case want == Bool && isBool(t.typ):
		t = t.as(types.Bool).plainly()
	case want == Bool:
		return c.errorf(start(n), "a bool is needed here; this is %s", c.a(t.typ))
	case isInt(t.typ):
		t = c.int64(t)
	case is(t.typ, types.IsFloat) && t.con != nil:
		return c.errorf(start(n), "found %v; a whole number is needed here", t.con)
	case is(t.typ, types.IsFloat):
		return c.errorf(start(n), "an integer is needed here; this is %s: write int(...) around it", c.a(t.typ))
	default:
		return c.errorf(start(n), "an integer is needed here; this is %s", c.a(t.typ))
	}
	t.source, t.plain = source, true
	return t
}

// unfit reports a value of ?: or ?? that is known to have the wrong type.
func (c *compiler) unfit(n ast.Node, want Want) bool {
	switch choice := n.(type) {
	case *ast.ConditionalNode:
		return c.unfit(choice.Exp1, want) || c.unfit(choice.Exp2, want)
	case *ast.BinaryNode:
		if choice.Operator == "??" {
			return c.unfit(choice.Left, want) || c.unfit(choice.Right, want)
		}
	}
	if c.seen[n] == nil {
		return false
	}
	t := c.seen[n].value()
	if isAny(t.typ) || isNil(t.typ) || want == Bool && isBool(t.typ) || want == Int && isInt(t.typ) {
		return false
	}
	c.errorf(start(n), "%s is needed here; this is %s", map[Want]string{Bool: "a bool", Int: "an integer"}[want], c.a(t.typ))
	return true
}

// int64 makes an int64 of any integer.
func (c *compiler) int64(t *term) *term {
	return c.integer(t, types.Int64).plainly()
}

// island lowers an expression to a text. The values between which ?: and ?? choose become texts one by one, so that
// they may be of different types.
func (c *compiler) island(n ast.Node) *term {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		return c.conditional(n, c.island)
	case *ast.VariableDeclaratorNode:
		return c.let(n, c.island)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return c.coalesce(n, c.alternative, c.island)
		}
	}
	t := c.term(n)
	if t == nil {
		return nil
	}
	return c.text(t)
}

// alternative lowers an operand of ??, but not the last one.
func (c *compiler) alternative(n ast.Node) *term {
	t := c.valueOf(n)
	if t == nil || isNil(t.typ) {
		return t
	}
	return c.text(t)
}

// text makes t a text with a stable form: by its own method MarshalText, else by its method String, else by its kind.
func (c *compiler) text(t *term) *term {
	source := t.typ
	switch {
	case isAny(source):
		t = c.onMachine(t.node, source)
	case t.gone:
		return c.errorf(start(t.node), "this method has no such parameter, and no ?? says what to take instead")
	case isNil(source):
		return c.errorf(start(t.node), "nil has no stable text form")
	case prints(source, "MarshalText"):
		t = c.marshalled(t)
	case prints(source, "String"):
		t = c.callMethod(t.node, t, "String", text)
	case isText(source), isBool(source), isInt(source):
		for _, m := range []string{"MarshalText", "String"} {
			if prints(types.NewPointer(source), m) {
				return c.errorf(start(t.node), "the method %s of %s is its pointer's and would not count: write string(...) around it",
					m, c.typeName(source))
			}
		}
		t = stable(t)
	default:
		return c.errorf(start(t.node), "%s has no stable text form%s", c.a(source), textHint(source))
	}
	v := *t
	v.source = source
	s, constant := v.con.(string)
	v.plain = constant && !strings.ContainsAny(s, `:\`) || t.plain
	return &v
}

func textHint(t types.Type) string {
	elem := pointee(t)
	switch {
	case elem != nil && (isText(elem) || isBool(elem) || isInt(elem)):
		return `; ?? "" behind it gives what it points to`
	case is(t, types.IsFloat):
		return "; write int(...) around it"
	}
	return ""
}

// callMethod calls a method without arguments on t. Where t may be absent so may be the result.
func (c *compiler) callMethod(n ast.Node, t *term, name string, result types.Type) *term {
	return c.onMethod(t, name, result, func(w *writer, callee string) operand {
		w.called = true
		return operand{text: callee + "()", prec: highest, calls: true}
	})
}

func (c *compiler) marshalled(t *term) *term {
	return c.onMethod(t, "MarshalText", text, func(w *writer, callee string) operand {
		w.called = true
		return w.conversion(text, w.must("text", callee+"()"))
	})
}

func (c *compiler) onMethod(t *term, name string, result types.Type, f func(*writer, string) operand) *term {
	obj, path, _ := types.LookupFieldOrMethod(t.typ, true, c.env.Package, name)
	m := obj.(*types.Func)
	return &term{node: t.node, typ: result, src: t.src, hint: "text", maybe: t.maybe || nilable(t.typ), write: func(w *writer) operand {
		o := w.term(t)
		if nilable(t.typ) && w.gates != nil {
			o = w.there(o, t)
		}
		return f(w, t.method(w, o, m, path).text)
	}}
}

// stable writes a text, a bool or an integer as a text.
func stable(t *term) *term {
	if t.con != nil && !isText(t.typ) {
		return literal(t.node, fmt.Sprint(t.con))
	}
	if isText(t.typ) {
		return t.as(types.String)
	}
	b := t.typ.Underlying().(*types.Basic)
	fn, to, rest := "FormatInt", types.Typ[types.Int64], ", 10"
	switch {
	case b.Info()&types.IsBoolean != 0:
		fn, to, rest = "FormatBool", truth, ""
	case types.Identical(t.typ, whole):
		fn, to, rest = "Itoa", whole, ""
	case b.Info()&types.IsUnsigned != 0:
		fn, to = "FormatUint", types.Typ[types.Uint64]
	}
	v := t.then(text, func(w *writer, o operand) operand {
		if !types.Identical(t.typ, to) {
			o = w.conversion(to, o)
		}
		return o.from(w.std("strconv", fn) + "(" + o.text + rest + ")")
	})
	v.plain, v.con = true, nil
	return v
}

// string lowers string(x): what %v prints.
func (c *compiler) string(n *ast.BuiltinNode, t *term) *term {
	for _, m := range []string{"Error", "String"} {
		if prints(t.typ, m) {
			return c.callMethod(n, t, m, text)
		}
	}
	switch {
	case isEnv(t.node), !isAny(t.typ) && !isNil(t.typ) && hasAddress(t.typ):
		return c.errorf(start(t.node), "string of %s may show an address, which is another one for each call", c.a(t.typ))
	case isText(t.typ):
		return t.plainly().as(types.String)
	case isBool(t.typ), isInt(t.typ):
		return stable(t)
	}
	return c.onMachine(n, text)
}
