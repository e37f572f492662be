package expr

import (
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

var (
	text     = types.Typ[types.String]
	whole    = types.Typ[types.Int]
	truth    = types.Typ[types.Bool]
	anything = types.Universe.Lookup("any").Type()
)

// A function is one of expr's.
type function struct {
	// takes are the lists of arguments, separated by spaces: s is a text, n an integer, q a number, Q a number or a list of
	// numbers, l a list, T a list of texts, m a map, z a *time.Location, a anything. What is computed for each element of the list before is
	// t, if it is true or false, x, if it is a number, or e. A + repeats the letter before it.
	takes string
	// gives is the type of the value: s, n and a are as above, f is a float, b a bool, S a list of texts, N an integer or nil. 1 is
	// the type of the first argument, o that of an element of it or nil, l a list of its elements. x is the type of a sum, e that
	// of what is computed for each element, L a list of these.
	gives byte
	// goes are the functions of package strings that compute the same, one for each list of arguments. Without one, expr's
	// machine has to.
	goes string
}

// functions are all that can be called. What has no takes is checked by a method of its own.
var functions = map[string]function{
	"len": {}, "string": {}, "int": {}, "min": {}, "max": {},

	"lower": {"s", 's', "ToLower"}, "upper": {"s", 's', "ToUpper"}, "trim": {"s ss", 's', "TrimSpace Trim"},
	"trimPrefix": {"ss s", 's', "TrimPrefix"}, "trimSuffix": {"ss s", 's', "TrimSuffix"},
	"hasPrefix": {"ss", 'b', "HasPrefix"}, "hasSuffix": {"ss", 'b', "HasSuffix"},
	"indexOf": {"ss", 'n', "Index"}, "lastIndexOf": {"ss", 'n', "LastIndex"}, "replace": {"sss sssn", 's', "ReplaceAll"},
	"split": {"ss ssn", 'S', "Split"}, "splitAfter": {"ss ssn", 'S', "SplitAfter"}, "join": {"T Ts", 's', ""},

	"repeat": {"sn", 's', ""}, "type": {"a", 's', ""}, "toJSON": {"a", 's', ""}, "fromJSON": {"s", 'a', ""},
	"toBase64": {"s", 's', ""}, "fromBase64": {"s", 's', ""},

	"float": {"q s", 'f', ""}, "abs": {"q", '1', ""}, "ceil": {"q", 'f', ""}, "floor": {"q", 'f', ""}, "round": {"q", 'f', ""},
	"mean": {"Q+", 'f', ""}, "median": {"Q+", 'f', ""},
	"bitand": {"nn", 'n', ""}, "bitor": {"nn", 'n', ""}, "bitxor": {"nn", 'n', ""}, "bitnand": {"nn", 'n', ""}, "bitnot": {"n", 'n', ""},
	"bitshl": {"nn", 'n', ""}, "bitshr": {"nn", 'n', ""}, "bitushr": {"nn", 'n', ""},

	"now": {" z", 'a', ""}, "date": {"s ss sss zs zss", 'a', ""}, "duration": {"s", 'a', ""}, "timezone": {"s", 'a', ""},

	"first": {"l", 'o', ""}, "last": {"l", 'o', ""}, "get": {"la ma", 'o', ""}, "take": {"ln", 'l', ""}, "reverse": {"l", 'l', ""},
	"uniq": {"l", 'l', ""}, "sort": {"l ls", 'l', ""}, "flatten": {"l", 'a', ""}, "concat": {"l+", 'l', ""},
	"keys": {"m", 'a', ""}, "values": {"m", 'a', ""}, "toPairs": {"m", 'a', ""}, "fromPairs": {"l", 'a', ""},

	"all": {"lt", 'b', ""}, "any": {"lt", 'b', ""}, "none": {"lt", 'b', ""}, "one": {"lt", 'b', ""},
	"filter": {"lt", 'l', ""}, "find": {"lt", 'o', ""}, "findLast": {"lt", 'o', ""},
	"findIndex": {"lt", 'N', ""}, "findLastIndex": {"lt", 'N', ""}, "count": {"l lt", 'n', ""}, "sum": {"l lx", 'x', ""},
	"sortBy": {"le les", 'l', ""}, "map": {"le", 'L', ""}, "groupBy": {"le", 'a', ""}, "reduce": {"le lea", 'e', ""},
}

// builtin lowers a call of one of expr's functions.
func (c *compiler) builtin(n *ast.BuiltinNode) *term {
	f, ok := functions[n.Name]
	if !ok {
		return c.errorf(n, "%s is a function of expr that is not known here", n.Name)
	}
	args, ok := c.functionArguments(n)
	if !ok {
		return nil
	}
	literals := len(args) > 0 && !slices.ContainsFunc(args, func(t *term) bool { return !t.lit || t.con == nil })
	if t, done := (*term)(nil), false; literals {
		if t, done = c.fold(n, args...); done {
			return t
		}
	}
	if f.takes == "" {
		return c.special(n, args)
	}
	form, wrong := f.form(args)
	switch {
	case form < 0 && wrong < len(args) && f.has(len(args)):
		return c.unfitArgument(n, args[wrong])
	case form < 0:
		return c.errorf(n, "%s does not take %s", n.Name, count(len(args), false, "argument"))
	case f.gives == 'x' && !takes('x', f.summand(args)):
		return c.errorf(start(n.Arguments[0]), "%s needs numbers; there is %s", n.Name, c.a(f.summand(args)))
	case n.Name == "repeat" && args[1].con == nil:
		return c.errorf(start(n.Arguments[1]), "repeat needs a constant count: a caller could make the text any length")
	}
	if goes := strings.Fields(f.goes); form < len(goes) && !slices.ContainsFunc(args, func(t *term) bool { return isAny(t.typ) }) {
		return c.inGo(n, goes[form], f.result(args), args)
	}
	t := c.onMachine(n, f.result(args))
	if f.gives == 'o' || f.gives == 'N' {
		t.maybe = true
	}
	return t
}

// functionArguments checks the arguments of one of expr's functions; what is computed for each element stands for the body.
func (c *compiler) functionArguments(n *ast.BuiltinNode) (args []*term, ok bool) {
	ok = true
	for i, a := range n.Arguments {
		var t *term
		if body, is := a.(*ast.PredicateNode); is && i > 0 && args[0] != nil {
			t = c.body(n, body, args[0].typ)
		} else if is {
			return nil, false
		} else if t = c.term(a); t != nil {
			t = t.value()
		}
		args, ok = append(args, t), ok && t != nil
	}
	return args, ok
}

// inGo calls a function of package strings.
func (c *compiler) inGo(n *ast.BuiltinNode, fn string, result types.Type, args []*term) *term {
	texts := make([]*term, len(args))
	for i, t := range args {
		texts[i] = t.asText()
	}
	return &term{node: n, typ: result, src: called(n.Name, args), hint: "text", write: func(w *writer) operand {
		return w.callOf(w.std("strings", fn), w.all(texts...)...)
	}}
}

// form returns which of the lists of arguments fits, or -1 and the first argument that fits in none.
func (f function) form(args []*term) (form, wrong int) {
	for i, form := range strings.Split(f.takes, " ") {
		at := misfit(form, args)
		if at < 0 {
			return i, 0
		}
		wrong = max(wrong, at)
	}
	return -1, wrong
}

// has reports whether the function takes n arguments.
func (f function) has(n int) bool {
	return slices.ContainsFunc(strings.Split(f.takes, " "), func(form string) bool {
		return len(form) == n || strings.HasSuffix(form, "+") && n > 0
	})
}

// misfit returns the index of the first of args that the form does not take, or -1.
func misfit(form string, args []*term) int {
	kinds := strings.TrimSuffix(form, "+")
	for i, t := range args {
		switch {
		case i < len(kinds) && takes(kinds[i], t.typ):
		case i >= len(kinds) && kinds != form && takes(kinds[len(kinds)-1], t.typ):
		default:
			return i
		}
	}
	if len(args) < len(kinds) {
		return len(args)
	}
	return -1
}

func takes(kind byte, t types.Type) bool {
	_, isMap := aggregate(t).(*types.Map)
	switch kind {
	case 's':
		return isText(t) || isAny(t)
	case 'n':
		return isInt(t) || isAny(t)
	case 'q', 'x':
		return isNumber(t) || isAny(t)
	case 'Q':
		return isNumber(t) || isList(t) || isAny(t)
	case 't':
		return isBool(t) || isAny(t)
	case 'l':
		return isList(t) || isAny(t)
	case 'T':
		return isAny(t) || isList(t) && takes('s', elemOf(t))
	case 'm':
		return isMap || isAny(t)
	case 'z':
		return isAny(t) || pointee(t) != nil && isNamed(pointee(t), "time", "Location")
	}
	return true
}

// result is the type of the value that the function gives for these arguments.
func (f function) result(args []*term) types.Type {
	switch f.gives {
	case 's':
		return text
	case 'S':
		return types.NewSlice(text)
	case 'n', 'N':
		return whole
	case 'f':
		return types.Typ[types.Float64]
	case 'b':
		return truth
	case '1':
		return args[0].typ
	case 'o':
		return itemOf(args[0].typ)
	case 'l':
		if slices.ContainsFunc(args[1:], func(t *term) bool { return isList(t.typ) && !types.Identical(t.typ, args[0].typ) }) {
			return types.NewSlice(anything)
		}
		return types.NewSlice(itemOf(args[0].typ))
	case 'x':
		return total(f.summand(args))
	case 'e':
		return args[1].typ
	case 'L':
		return types.NewSlice(args[1].typ)
	}
	return anything
}

// summand is the type of what is summed up.
func (f function) summand(args []*term) types.Type {
	if len(args) == 1 {
		return itemOf(args[0].typ)
	}
	return args[1].typ
}

// total is the type of a sum of numbers.
func total(t types.Type) types.Type {
	switch {
	case isInt(t):
		return whole
	case isNumber(t):
		return types.Typ[types.Float64]
	}
	return anything
}

// itemOf is the type of what is in a list or a map; any for what may be one.
func itemOf(t types.Type) types.Type {
	if elem := elemOf(t); elem != nil {
		return elem
	}
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Elem()
	}
	return anything
}

// special lowers the functions whose arguments are not of one kind.
func (c *compiler) special(n *ast.BuiltinNode, args []*term) *term {
	switch most := map[string]int{"min": 100, "max": 100}[n.Name]; {
	case len(args) == 0 || len(args) > max(most, 1):
		return c.errorf(n, "%s takes %s, not %d", n.Name, count(1, most > 0, "argument"), len(args))
	case n.Name == "string" && !isAny(args[0].typ):
		t := c.string(n, args[0])
		if t != nil && t.src == "" {
			t.src = called(n.Name, args)
		}
		return t
	case n.Name == "len" && !isAny(args[0].typ):
		return c.length(n, args[0])
	case n.Name == "min", n.Name == "max":
		return c.extreme(n, args)
	case n.Name == "int" && isInt(args[0].typ):
		return c.integer(args[0], arithmeticKind(args[0])).plainly()
	case n.Name == "int" && !isNumber(args[0].typ) && !isText(args[0].typ) && !isAny(args[0].typ):
		return c.unfitArgument(n, args[0])
	case n.Name == "string":
		return c.onMachine(n, text)
	}
	return c.onMachine(n, whole)
}

// unfitArgument says that a function does not take t.
func (c *compiler) unfitArgument(n *ast.BuiltinNode, t *term) *term {
	return c.errorf(start(t.node), "%s cannot be used with %s", n.Name, c.a(t.typ))
}

// length is how many letters a text has, or elements a list or a map.
func (c *compiler) length(n *ast.BuiltinNode, t *term) *term {
	v := &term{node: n, typ: whole, src: called(n.Name, []*term{t}), hint: "n"}
	if isText(t.typ) {
		t = t.asText()
		v.write = func(w *writer) operand { return w.callOf(w.std("unicode/utf8", "RuneCountInString"), w.term(t)) }
		return v
	}
	switch aggregate(t.typ).(type) {
	case *types.Map, *types.Slice, *types.Array:
		if pointee(t.typ) != nil {
			return c.onMachine(n, whole)
		}
		v.write = func(w *writer) operand {
			o := w.term(t)
			return o.from(w.word("len") + "(" + o.text + ")")
		}
		return v
	}
	return c.unfitArgument(n, t)
}

// extreme lowers min and max: of integers of one type to Go's own.
func (c *compiler) extreme(n *ast.BuiltinNode, args []*term) *term {
	result := args[0].typ
	for _, t := range args {
		if !takes('Q', t.typ) {
			return c.unfitArgument(n, t)
		}
		if !types.Identical(t.typ, result) {
			result = anything
		}
	}
	if isList(result) {
		return c.onMachine(n, itemOf(result))
	}
	if slices.ContainsFunc(args, func(t *term) bool { return !isInt(t.typ) }) {
		return c.onMachine(n, result)
	}
	met := c.meet(n, args)
	if met == nil || len(met) < len(args) {
		return c.onMachine(n, anything)
	}
	return &term{node: n, typ: met[0].typ, src: called(n.Name, args), hint: "n", write: func(w *writer) operand {
		return w.callOf(w.word(n.Name), w.all(met...)...)
	}}
}

// closure is what # stands for in what is computed for each element of a list.
type closure struct {
	item types.Type
	name string // of the function
}

// body checks what is computed for each element of a list.
func (c *compiler) body(n *ast.BuiltinNode, body *ast.PredicateNode, list types.Type) *term {
	c.closures = append(c.closures, closure{itemOf(list), n.Name})
	t := c.term(body.Node)
	c.closures = c.closures[:len(c.closures)-1]
	c.machine = true
	switch {
	case t == nil:
		return nil
	case takesBody(n.Name, 't') && !takes('t', t.value().typ):
		return c.errorf(start(body.Node), "%s needs a bool here; this is %s", n.Name, c.a(t.value().typ))
	case takesBody(n.Name, 'x') && !takes('x', t.value().typ):
		return c.errorf(start(body.Node), "%s needs numbers; there is %s", n.Name, c.a(t.value().typ))
	case isNil(t.typ), t.optional() && takesBody(n.Name, 'e'):
		return &term{node: body.Node, typ: anything}
	case takesBody(n.Name, 'e'):
		return &term{node: body.Node, typ: t.typ}
	}
	return &term{node: body.Node, typ: t.value().typ}
}

// takesBody reports whether what the function computes for each element is of a kind.
func takesBody(name string, kind byte) bool {
	return strings.IndexByte(functions[name].takes, kind) > 0
}

// pointer is #, #index or #acc.
func (c *compiler) pointer(n *ast.PointerNode) *term {
	if len(c.closures) == 0 {
		return c.errorf(n, "unexpected #%s", n.Name)
	}
	scope := c.closures[len(c.closures)-1]
	typ := scope.item
	switch {
	case n.Name == "":
	case n.Name == "index" && (scope.name == "map" || scope.name == "reduce"):
		typ = whole
	case n.Name == "acc" && scope.name == "reduce":
		typ = anything
	default:
		return c.errorf(n, "there is no #%s here", n.Name)
	}
	t := c.onMachine(n, typ)
	t.src = "#" + n.Name
	return t
}

// matches is a search by a regular expression, which must be known: one that a caller sends could take any time.
func (c *compiler) matches(n *ast.BinaryNode, l, r *term) *term {
	if !takes('s', l.typ) || !takes('s', r.typ) {
		return c.mixed(n, l, r)
	}
	pattern, ok := r.con.(string)
	if !ok {
		return c.errorf(start(n.Right), "matches needs a constant pattern")
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return c.errorf(start(n.Right), "%v", err)
	}
	return c.onMachine(n, truth)
}
