package expr

import (
	"fmt"
	"go/types"
	"math"
	"regexp"
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
	if t := c.finally(c.term(n), want); t != nil {
		return t.plainly() // a nil is a KeyError
	}
	return nil
}

// finally converts t to the wanted type.
func (c *compiler) finally(t *term, want Want) *term {
	if t == nil {
		return nil
	}
	if want == Island {
		return c.text(t)
	}
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
	v.plain = true
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
	source := t.typ
	switch {
	case isAny(source):
		t = c.onMachine(t.node, source)
	case t.absent:
		return c.errorf(start(t.node), "this method has no such parameter; write ?? and a value for this case")
	case isNil(source):
		return c.errorf(start(t.node), "nil has no stable text form")
	case prints(source, "MarshalText"):
		t = c.callMethod(t, "MarshalText")
	case prints(source, "String"):
		t = c.callMethod(t, "String")
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
	s, constant := v.con.(string)
	v.plain = constant && !strings.ContainsAny(s, `:\`) || t.plain
	return &v
}

// path matches a variable, or a field of one.
var path = regexp.MustCompile(`^[$\pL_][\pL_\pN.]*$`)

// textHint says what to write instead of a value without a text form.
func textHint(t *term) string {
	such := func(part string) string {
		if part == "" || !path.MatchString(t.node.String()) {
			return ""
		}
		return ", such as " + t.node.String() + part
	}
	part := textPart(t.typ)
	switch of := aggregate(t.typ).(type) {
	case *types.Basic:
		if is(of, types.IsFloat) {
			return "; write int(...) around it"
		}
		if hasText(of) {
			return `; ?? "" after it gives what it points to`
		}
	case *types.Struct:
		if part != "" {
			return "; write a field of it" + such(part)
		}
	case *types.Slice, *types.Array, *types.Map:
		if isBytes(t.typ) {
			return "; write string(...) around it"
		}
		return "; write one value of it" + such(part)
	}
	return ""
}

// hasText reports whether values of a type have a text form without a method.
func hasText(t types.Type) bool { return isText(t) || isBool(t) || isInt(t) }

// textPart returns the first part of a struct, a list or a map that has a text form, such as .Name or [0].Name, or "".
func textPart(t types.Type) string {
	index := "[0]"
	switch of := aggregate(t).(type) {
	case *types.Struct:
		for f := range of.Fields() {
			if hasText(f.Type()) && f.Exported() {
				return "." + f.Name()
			}
		}
		return ""
	case *types.Map:
		if !isInt(of.Key()) {
			index = `["name"]`
		}
	}
	elem := itemOf(t)
	if _, ok := aggregate(elem).(*types.Struct); ok && textPart(elem) != "" {
		return index + textPart(elem)
	}
	if hasText(elem) || isAny(elem) {
		return index
	}
	return ""
}

// callMethod calls a method without arguments, which gives a text. Where t may be absent so may be the result.
func (c *compiler) callMethod(t *term, name string) *term {
	obj, path, _ := types.LookupFieldOrMethod(t.typ, true, c.env.Package, name)
	m := obj.(*types.Func)
	return &term{node: t.node, typ: text, optional: t.optional || nilable(t.typ), decided: t.decided, write: func(w *writer) operand {
		call := w.callOf(t.method(w, w.term(t), m, path).text)
		if m.Signature().Results().Len() > 1 {
			return w.conversion(text, w.must(call))
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
			return c.callMethod(t, m)
		}
	}
	switch {
	case isEnv(t.node), !isAny(t.typ) && !isNil(t.typ) && hasAddress(t.typ):
		return c.errorf(start(t.node), "string of %s may show an address, which differs from call to call", c.a(t.typ))
	case isText(t.typ), isBytes(t.typ):
		return t.as(types.String)
	case isBool(t.typ), isInt(t.typ):
		return stable(t)
	}
	return c.onMachine(n, text)
}
