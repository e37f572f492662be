package expr

import (
	"fmt"
	"go/types"
	"math"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// want lowers the whole expression to the wanted type. It converts each alternative of ?: and ?? separately, so that their types may
// differ.
func (c *compiler) want(n ast.Node, want Want) *term {
	each := func(n ast.Node) *term { return c.want(n, want) }
	alternative := func(n ast.Node) *term {
		t := c.valueOf(n)
		if t == nil || isNil(t.typ) {
			return t
		}
		return c.finally(t, want)
	}
	switch n := n.(type) {
	case *ast.ConditionalNode:
		return c.conditional(n, each)
	case *ast.VariableDeclaratorNode:
		return c.let(n, each)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return c.coalesce(n, alternative, each)
		}
	}
	return c.finally(c.term(n), want)
}

// finally converts t to the wanted type.
func (c *compiler) finally(t *term, want Want) *term {
	if t == nil {
		return nil
	}
	if want == Island {
		return c.text(t)
	}
	sure := t.sure
	switch t = t.value(); {
	case isAny(t.typ):
		t = c.onMachine(t.node, t.typ)
	case want == Bool && isBool(t.typ):
		t = t.as(types.Bool)
	case want == Bool:
		return c.errorf(start(t.node), "a bool is needed here; this is %s", c.a(t.typ))
	case want == Duration && isDuration(t.typ):
		t.typ = duration // the alternatives of a choice need one type
	case want == Duration:
		return c.errorf(start(t.node), "a time.Duration is needed here; this is %s: write retryAfter(err), duration(\"10s\") or a function of yours", c.a(t.typ))
	case isInt(t.typ):
		t = t.integer(types.Int64)
	case is(t.typ, types.IsFloat) && isFraction(t.con):
		return c.errorf(start(t.node), "found %v; a whole number is needed here", t.con)
	case is(t.typ, types.IsFloat):
		return c.errorf(start(t.node), "an integer is needed here; this is %s: write int(...) around it", c.a(t.typ))
	default:
		return c.errorf(start(t.node), "an integer is needed here; this is %s", c.a(t.typ))
	}
	v := *t
	v.final, v.plain, v.sure = true, true, sure
	if want == Int && v.lit {
		v.typ = types.Typ[types.Int64]
	}
	return &v
}

func isFraction(con any) bool {
	f, ok := con.(float64)
	return ok && f != math.Trunc(f)
}

// text converts t to a text that is the same for equal values. It uses the method MarshalText, or else the method String, or else
// the kind of the type.
func (c *compiler) text(t *term) *term {
	source, sure := t.typ, t.sure
	switch {
	case isAny(source):
		t = c.onMachine(t.node, source)
	case t.gone:
		return c.errorf(start(t.node), "this method has no such parameter; write ?? and a value for this case")
	case isNil(source):
		return c.errorf(start(t.node), "nil has no stable text form")
	case prints(source, "MarshalText"):
		t = c.callMethod(t, "MarshalText", text)
	case prints(source, "String"):
		t = c.callMethod(t, "String", text)
	case isText(source), isBool(source), isInt(source):
		for _, m := range []string{"MarshalText", "String"} {
			if prints(types.NewPointer(source), m) {
				return c.errorf(start(t.node), "the method %s of %s needs a pointer, so it would not be called: write string(...) around it",
					m, c.typeName(source))
			}
		}
		t = stable(t)
	default:
		return c.errorf(start(t.node), "%s has no stable text form%s", c.a(source), textHint(t))
	}
	v := *t
	v.final, v.sure = true, sure
	s, constant := v.con.(string)
	v.plain = constant && !strings.ContainsAny(s, `:\`) || t.plain
	return &v
}

// textHint says what to write instead of a value without a text form.
func textHint(t *term) string {
	of := t.typ
	if elem := pointee(of); elem != nil {
		of = elem
	}
	such := func(part string) string {
		if part == "" || !isPath(t.node) {
			return ""
		}
		return ", such as " + t.node.String() + part
	}
	switch u := of.Underlying().(type) {
	case *types.Basic:
		if is(of, types.IsFloat) {
			return "; write int(...) around it"
		}
		if hasText(of) {
			return `; ?? "" after it gives what it points to`
		}
	case *types.Struct:
		if field := textField(of); field != "" {
			return "; write a field of it" + such(field)
		}
	case *types.Slice:
		if isBytes(t.typ) {
			return "; write string(...) around it"
		}
		return "; write one value of it" + such(element("[0]", u.Elem()))
	case *types.Array:
		return "; write one value of it" + such(element("[0]", u.Elem()))
	case *types.Map:
		index := `["name"]`
		if isInt(u.Key()) {
			index = "[0]"
		}
		return "; write one value of it" + such(element(index, u.Elem()))
	}
	return ""
}

// hasText reports whether values of a type have a text form without a method.
func hasText(t types.Type) bool { return isText(t) || isBool(t) || isInt(t) }

// element returns an index, and the field of the element if only that has a text form. It returns "" if neither has one.
func element(index string, of types.Type) string {
	if field := textField(of); field != "" || hasText(of) || isAny(of) {
		return index + field
	}
	return ""
}

// textField returns the first field of a struct that has a text form, as in .Name, or "".
func textField(t types.Type) string {
	if s, ok := aggregate(t).(*types.Struct); ok {
		for f := range s.Fields() {
			if hasText(f.Type()) && f.Exported() {
				return "." + f.Name()
			}
		}
	}
	return ""
}

// isPath reports whether n is a name or a member of a name.
func isPath(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return true
	case *ast.MemberNode:
		return isPath(n.Node)
	}
	return false
}

// callMethod calls a method without arguments, which gives a text, or a context. Where t may be absent so may be the result.
func (c *compiler) callMethod(t *term, name string, result types.Type) *term {
	obj, path, _ := types.LookupFieldOrMethod(t.typ, true, c.env.Package, name)
	m := obj.(*types.Func)
	return &term{node: t.node, typ: result, gates: t.orNil(), write: func(w *writer) operand {
		call := w.callOf(t.method(w, w.term(t), m, path).text)
		if m.Signature().Results().Len() > 1 {
			return w.conversion(result, w.must(call))
		}
		return call
	}}
}

// stable converts a text, a bool or an integer to a text.
func stable(t *term) *term {
	if t.con != nil && !isText(t.typ) {
		return literal(t.node, fmt.Sprint(t.con))
	}
	if isText(t.typ) {
		return t.as(types.String)
	}
	fn, kind, rest := "FormatInt", types.Int64, ", 10"
	switch {
	case isBool(t.typ):
		fn, kind, rest = "FormatBool", types.Bool, ""
	case types.Identical(t.typ, whole):
		fn, kind, rest = "Itoa", types.Int, ""
	case is(t.typ, types.IsUnsigned):
		fn, kind = "FormatUint", types.Uint64
	}
	v := t.as(kind).then(text, func(w *writer, o operand) operand {
		return primary(w.std("strconv", fn) + "(" + o.text + rest + ")")
	})
	v.plain, v.number, v.con = true, true, nil
	return v
}

// string lowers string(x), which gives what %v prints.
func (c *compiler) string(n ast.Node, t *term) *term {
	for _, m := range []string{"Error", "String"} {
		if prints(t.typ, m) {
			return c.callMethod(t, m, text)
		}
	}
	switch {
	case isEnv(t.node), !isAny(t.typ) && !isNil(t.typ) && hasAddress(t.typ):
		return c.errorf(start(t.node), "string of %s may show an address, which differs from call to call", c.a(t.typ))
	case isText(t.typ), isBytes(t.typ):
		return t.plainly().as(types.String)
	case isBool(t.typ), isInt(t.typ):
		return stable(t)
	}
	return c.onMachine(n, text)
}
