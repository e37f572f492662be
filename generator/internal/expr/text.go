package expr

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// want lowers the whole expression to the wanted type. It converts each alternative of ?: and ?? separately, so that their types may
// differ.
func (c *compiler) want(n ast.Node, want Want) *term {
	each := func(n ast.Node) *term { return c.want(n, want) }
	switch n := n.(type) {
	case *ast.ConditionalNode:
		return c.conditional(n, each)
	case *ast.VariableDeclaratorNode:
		return c.let(n, each)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return c.coalesce(n, func(t *term) *term { return c.finally(t, want) }, each)
		}
	}
	return c.finally(c.term(n), want)
}

// finally converts t to the wanted type. A nil is a KeyError.
func (c *compiler) finally(t *term, want Want) *term {
	if t == nil {
		return nil
	}
	if want == Island || want == Message {
		return c.text(t)
	}
	t = t.value().plainly()
	switch {
	case isAny(t.typ):
		return c.dynamic(t, resultOf[want])
	case want == Bool && isBool(t.typ):
		return t.as(types.Bool)
	case want == Bool:
		return c.errorf(start(t.node), "a bool is needed here; this is %s", c.a(t.typ))
	case want == Duration && isDuration(t.typ):
		return t.retyped(c.ofTime("Duration", duration)) // the alternatives of a choice need one type
	case want == Duration:
		return c.errorf(start(t.node), "a time.Duration is needed here; this is %s: write retryAfter(err), duration('10s') or a function of yours", c.a(t.typ))
	case want == Moment && isTime(t.typ):
		return t.retyped(c.ofTime("Time", moment))
	case want == Moment:
		return c.errorf(start(t.node), "a time.Time is needed here; this is %s: write a field of that type, date('2026-01-31') or a function of yours", c.a(t.typ))
	case isFloat(t.typ):
		return c.amount(t, want)
	case isInt(t.typ):
		t = t.integer(types.Int64)
		if t.lit {
			return t.retyped(types.Typ[types.Int64])
		}
		return t
	}
	return c.errorf(start(t.node), "a number is needed here; this is %s", c.a(t.typ))
}

// amount converts a float to a cost, which is rounded up, or to a limit, which is rounded down:
//
//	wrap.Must(wrap.RoundUp(size / 1024))
func (c *compiler) amount(t *term, want Want) *term {
	round, fn := wrap.RoundUp, "RoundUp"
	if want == Limit {
		round, fn = wrap.RoundDown, "RoundDown"
	}
	if f, ok := t.con.(float64); ok {
		n, err := round(f)
		switch {
		case err != nil:
			return c.errorf(start(t.node), "%v", err)
		case want == Limit && float64(n) != f:
			return c.errorf(start(t.node), "found %v; expected a whole number, such as limit=1 per=2m in place of limit=0.5 per=1m", f)
		case int64(int(n)) == n:
			return literal(t.node, int(n)).retyped(types.Typ[types.Int64])
		}
	}
	return must(goCall(t.node, types.Typ[types.Int64], wrapPath, fn, t.as(types.Float64)))
}

// text converts t to a text that is the same for equal values. It uses the method MarshalText, or else the method String, or else
// the kind of the type. In a key, equal times have one zone:
//
//	string(wrap.Must(at.UTC().MarshalText()))
func (c *compiler) text(t *term) *term {
	t = t.plainly()
	source := t.typ
	switch {
	case isNil(source):
		return c.errorf(start(t.node), "nil has no stable text form")
	case isTime(source) && c.wanted == Island:
		t = c.callMethod(t, "UTC")
		t.typ = source
		return c.callMethod(t, "MarshalText")
	case prints(source, "MarshalText"):
		return c.callMethod(t, "MarshalText")
	case prints(source, "String"):
		return c.callMethod(t, "String")
	case isAny(source), isTypeParam(source) && is(source, types.IsOrdered|types.IsBoolean) && !isText(source) && !isBool(source) && !isInt(source):
		return must(goCall(t.node, text, wrapPath, "TextOf", t))
	case isText(source), isBool(source), isInt(source):
		for _, m := range []string{"MarshalText", "String"} {
			if prints(types.NewPointer(source), m) {
				return c.errorf(start(t.node), "the method %s of %s needs a pointer, so it would not be called: write string(...) around it",
					m, c.typeName(source))
			}
		}
		return stable(t)
	}
	if v := t.sole(); v != t {
		return c.text(v)
	}
	return c.errorf(start(t.node), "%s has no stable text form%s", c.a(source), textHint(t))
}

// textHint says what to write instead of a value without a text form.
func textHint(t *term) string {
	such := func(part string) string {
		if part == "" || !isPath(t.node) {
			return ""
		}
		return ", such as " + strings.ReplaceAll(t.node.String(), `"`, "'") + part
	}
	part := textPart(t.typ)
	switch of := aggregate(t.typ).(type) {
	case *types.Basic:
		if is(of, types.IsFloat) {
			return "; write int(...) around it"
		}
		if hasText(of) {
			return "; ?? '' after it gives what it points to"
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
			index = "['name']"
		}
	}
	elem := itemOf(t)
	if elem == nil {
		return ""
	}
	if _, ok := aggregate(elem).(*types.Struct); ok && textPart(elem) != "" {
		return index + textPart(elem)
	}
	if hasText(elem) || isAny(elem) {
		return index
	}
	return ""
}

// callMethod calls a method without arguments, which gives a text.
func (c *compiler) callMethod(t *term, name string) *term {
	obj, path, _ := types.LookupFieldOrMethod(t.typ, true, c.env.Package, name)
	m := obj.(*types.Func)
	return &term{node: t.node, typ: text, write: func(w *writer) operand {
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
	case is(t.typ, types.IsUnsigned), wide(t.typ):
		fn, kind = "FormatUint", types.Uint64
	}
	v := t.as(kind).then(text, func(w *writer, o operand) operand {
		return primary(w.std("strconv", fn) + "(" + o.text + rest + ")")
	})
	v.con = nil
	return v
}
