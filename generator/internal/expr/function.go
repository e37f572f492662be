package expr

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

var (
	text     = types.Typ[types.String]
	whole    = types.Typ[types.Int]
	truth    = types.Typ[types.Bool]
	anything = types.Universe.Lookup("any").Type()
)

// function is a function of expr.
type function struct {
	// takes has the possible lists of arguments, separated by spaces, with a letter for each argument. A + after a letter means that
	// the argument may be repeated.
	//
	//	s text     n integer     q number     a anything     l list     T list of texts     X list of numbers     m map
	//	Q number or list of numbers     c time.Time     d time.Duration     i integer, but no d     r number, but no d
	//	z *time.Location
	//
	// Three letters stand for an expression that is computed for each element of the preceding list, and for its type:
	// t true or false, x number, e anything.
	takes string
	// gives is the type of the result, with one letter for all lists of arguments or one for each list. s, n and a are as in takes.
	//
	//	f float     b bool     S list of texts     N integer or nil     I list of integers
	//	o type of an element of the first argument, or nil     l list of such elements
	//	M type of all arguments, or of the elements of the first
	//	x type of a sum     e type of the expression for each element     L list of these
	//	1 type of the first argument     2 type of the second
	gives string
	// goes has the functions of package strings that give the same result, one for each list of arguments. Without it, the machine
	// runs the function, unless [compiler.inGo] lowers it.
	goes string
}

// functions are all functions of expr that an expression may call.
var functions = map[string]function{
	"len": {"s l m", "n", ""}, "string": {"a", "s", ""}, "int": {"q s", "n", ""}, "min": {"Q+", "M", ""}, "max": {"Q+", "M", ""},

	"lower": {"s", "s", "ToLower"}, "upper": {"s", "s", "ToUpper"}, "trim": {"s ss", "s", "TrimSpace Trim"},
	"trimPrefix": {"ss s", "s", "TrimPrefix"}, "trimSuffix": {"ss s", "s", "TrimSuffix"},
	"hasPrefix": {"ss", "b", "HasPrefix"}, "hasSuffix": {"ss", "b", "HasSuffix"},
	"indexOf": {"ss", "n", "Index"}, "lastIndexOf": {"ss", "n", "LastIndex"}, "replace": {"sss sssn", "s", ""},
	"split": {"ss ssn", "S", ""}, "splitAfter": {"ss ssn", "S", ""}, "join": {"T Ts", "s", ""},

	"repeat": {"sn", "s", ""}, "type": {"a", "s", ""}, "toJSON": {"a", "s", ""}, "fromJSON": {"s", "a", ""},
	"toBase64": {"s", "s", ""}, "fromBase64": {"s", "s", ""},

	"float": {"q s", "f", ""}, "abs": {"q", "M", ""}, "ceil": {"q", "f", ""}, "floor": {"q", "f", ""}, "round": {"q", "f", ""},
	"mean": {"Q+", "f", ""}, "median": {"Q+", "f", ""},
	"bitand": {"nn", "n", ""}, "bitor": {"nn", "n", ""}, "bitxor": {"nn", "n", ""}, "bitnand": {"nn", "n", ""}, "bitnot": {"n", "n", ""},
	"bitshl": {"nn", "n", ""}, "bitshr": {"nn", "n", ""}, "bitushr": {"nn", "n", ""},

	"now": {" z", "a", ""}, "date": {"s ss sss zs zss", "a", ""}, "duration": {"s", "a", ""}, "timezone": {"s", "a", ""},

	"first": {"l", "o", ""}, "last": {"l", "o", ""}, "get": {"la ma", "o", ""}, "take": {"ln", "l", ""}, "reverse": {"l", "l", ""},
	"uniq": {"l", "l", ""}, "sort": {"l ls", "l", ""}, "flatten": {"l", "a", ""}, "concat": {"l+", "l", ""},
	"keys": {"m", "a", ""}, "values": {"m", "a", ""}, "toPairs": {"m", "a", ""}, "fromPairs": {"l", "a", ""},

	"all": {"lt", "b", ""}, "any": {"lt", "b", ""}, "none": {"lt", "b", ""}, "one": {"lt", "b", ""},
	"filter": {"lt", "l", ""}, "find": {"lt", "o", ""}, "findLast": {"lt", "o", ""},
	"findIndex": {"lt", "N", ""}, "findLastIndex": {"lt", "N", ""}, "count": {"l lt", "n", ""}, "sum": {"X lx", "x", ""},
	"sortBy": {"le les", "l", ""}, "map": {"le", "L", ""}, "groupBy": {"le", "a", ""}, "reduce": {"le lea", "e", ""},
}

// builtin lowers a call of a function of expr.
func (c *compiler) builtin(n *ast.BuiltinNode) *term {
	args, ok := c.functionArguments(n)
	if !ok {
		return nil
	}
	return c.apply(n, n.Name, functions[n.Name], args...)
}

// apply lowers a function or an operator.
func (c *compiler) apply(n ast.Node, name string, f function, args ...*term) *term {
	form, wrong := f.form(args)
	switch {
	case form < 0:
		return c.misfit(n, name, args, wrong)
	case name == "repeat" && args[1].con == nil:
		return c.errorf(start(args[1].node), "repeat needs a constant count: a caller could make the text any length")
	case name == "matches" && !c.isPattern(args[1]):
		return nil
	}
	if t, done := c.fold(n, args...); done {
		return t
	}
	if !slices.ContainsFunc(args, func(t *term) bool { return isAny(t.typ) }) {
		if t, ok := c.inGo(n, name, f, form, args); ok {
			return t
		}
	}
	if f.gives == "o" || f.gives == "N" {
		return c.maybeNil(n, f.result(form, args))
	}
	return c.onMachine(n, f.result(form, args))
}

// misfit reports that an operator or a function does not take these arguments. The index of the wrong argument is -1 if their
// number is wrong.
func (c *compiler) misfit(n ast.Node, name string, args []*term, wrong int) *term {
	switch n := n.(type) {
	case *ast.BinaryNode:
		return c.mixed(n, args[0], args[1])
	case *ast.UnaryNode:
		return c.errorf(n, "%s cannot be used with %s", name, c.a(args[0].typ))
	}
	if wrong < 0 {
		return c.errorf(n, "wrong number of arguments for %s: %d", name, len(args))
	}
	return c.errorf(start(args[wrong].node), "%s cannot be used with %s", name, c.a(args[wrong].typ))
}

// inGo lowers a function or an operator that Go has, too. If Go has none, ok is false.
func (c *compiler) inGo(n ast.Node, name string, f function, form int, args []*term) (t *term, ok bool) {
	takes := strings.Split(f.takes, " ")[form]
	goes := strings.Fields(f.goes)
	_, isFunction := n.(*ast.BuiltinNode)
	switch name + " " + takes {
	case "string a":
		return c.string(n, args[0]), true
	case "len s":
		return goCall(n, whole, "unicode/utf8", "RuneCountInString", texts(args)...), true
	case "len l", "len m":
		return goCall(n, whole, "", name, args...), pointee(args[0].typ) == nil
	case "int q":
		return args[0].integer(arithmeticKind(args[0])).plainly(), isInt(args[0].typ)
	case "min Q+", "max Q+":
		return c.extreme(n, name, args)
	case "replace sss":
		return checked(n, text, "Replace", texts(args)...), true
	case "! t", "not t":
		return c.not(n, args[0].as(types.Bool)), true
	case "- n":
		t := args[0].unnamed()
		return checked(n, t.typ, "Negate", t), true
	case "+ ss":
		return infix(n, text, token.ADD, texts(args)...), true
	case "+ ii", "- ii", "* ii", "% ii":
		return c.integers(n, name, args[0], args[1]), true
	case "< qq", "<= qq", "> qq", ">= qq", "< ss", "<= ss", "> ss", ">= ss":
		return c.order(n.(*ast.BinaryNode), args[0], args[1]), true
	}
	if form < len(goes) && (isFunction || !slices.ContainsFunc(args, (*term).optional)) {
		return goCall(n, f.result(form, args), "strings", goes[form], texts(args)...), true
	}
	return nil, false
}

// extreme lowers min and max of integers of one type.
func (c *compiler) extreme(n ast.Node, name string, args []*term) (t *term, ok bool) {
	if slices.ContainsFunc(args, func(t *term) bool { return !isInt(t.typ) }) {
		return nil, false
	}
	for i, t := range args {
		args[i] = t.unnamed()
	}
	met := c.meet(n, args)
	return goCall(n, met[0].typ, "", name, met...), len(met) == len(args)
}

// goCall returns a call of a Go function. The path of a predeclared function is "".
func goCall(n ast.Node, t types.Type, path, fn string, args ...*term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand { return w.callOf(w.std(path, fn), w.all(args...)...) }}
}

func texts(terms []*term) []*term {
	all := make([]*term, len(terms))
	for i, t := range terms {
		all[i] = t.as(types.String)
	}
	return all
}

// functionArguments lowers the arguments of a function of expr. For a body it returns a term of the type that is computed for each
// element.
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

// form returns the index of the list of arguments that fits, or -1. Then wrong is the index of the first argument that fits no list,
// or -1 if no list has as many arguments.
func (f function) form(args []*term) (form, wrong int) {
	wrong = -1
	for i, kinds := range strings.Split(f.takes, " ") {
		if repeated, ok := strings.CutSuffix(kinds, "+"); ok {
			kinds = strings.Repeat(repeated, max(1, len(args)))
		}
		if len(kinds) != len(args) {
			continue
		}
		at := 0
		for at < len(args) && takes(kinds[at], args[at].typ) {
			at++
		}
		if at == len(args) {
			return i, -1
		}
		wrong = max(wrong, at)
	}
	return -1, wrong
}

// kinds maps the letters in takes to tests of types.
var kinds = map[byte]func(types.Type) bool{
	's': isText, 'n': isInt, 'q': isNumber, 'x': isNumber, 't': isBool, 'l': isList, 'c': isTime, 'd': isDuration,
	'i': func(t types.Type) bool { return isInt(t) && !isDuration(t) },
	'r': func(t types.Type) bool { return isNumber(t) && !isDuration(t) },
	'Q': func(t types.Type) bool { return isNumber(t) || isList(t) },
	'X': listOf(isNumber), 'T': listOf(isText),
	'z': func(t types.Type) bool { return pointee(t) != nil && reach.IsNamed(pointee(t), "time", "Location") },
	'm': func(t types.Type) bool {
		_, ok := aggregate(t).(*types.Map)
		return ok
	},
}

func listOf(is func(types.Type) bool) func(types.Type) bool {
	return func(t types.Type) bool { return isList(t) && (isAny(elemOf(t)) || is(elemOf(t))) }
}

func takes(kind byte, t types.Type) bool {
	is := kinds[kind]
	return is == nil || isAny(t) || is(t)
}

// results maps the letters in gives to types, for the letters that do not depend on the arguments.
var results = map[byte]types.Type{
	's': text, 'S': types.NewSlice(text), 'n': whole, 'N': whole, 'I': types.NewSlice(whole), 'f': types.Typ[types.Float64], 'b': truth,
	'a': anything,
}

// result returns the type of the result for these arguments. The form is the index of their list in takes.
func (f function) result(form int, args []*term) types.Type {
	if len(f.gives) > 1 && slices.ContainsFunc(args, func(t *term) bool { return isAny(t.typ) }) {
		return anything
	}
	gives := f.gives[min(form, len(f.gives)-1)]
	switch gives {
	case '1':
		return args[0].typ
	case 'o':
		return itemOf(args[0].typ)
	case 'l':
		if slices.ContainsFunc(args[1:], func(t *term) bool { return isList(t.typ) && !types.Identical(t.typ, args[0].typ) }) {
			return types.NewSlice(anything)
		}
		return types.NewSlice(itemOf(args[0].typ))
	case 'M':
		t := common(args)
		if isList(t) {
			return itemOf(t)
		}
		return t
	case 'x':
		if len(args) == 1 {
			return total(itemOf(args[0].typ))
		}
		return total(args[1].typ)
	case '2', 'e':
		return args[1].typ
	case 'L':
		return types.NewSlice(args[1].typ)
	}
	return results[gives]
}

// total returns the type of a sum of values of type t.
func total(t types.Type) types.Type {
	switch {
	case isInt(t):
		return whole
	case isNumber(t):
		return types.Typ[types.Float64]
	}
	return anything
}

// itemOf returns the type of the elements of a list or a map, or any if t may be one.
func itemOf(t types.Type) types.Type {
	if elem := elemOf(t); elem != nil {
		return elem
	}
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Elem()
	}
	return anything
}

// closure is an expression that is computed for each element of a list, which it calls #.
type closure struct {
	item types.Type
	name string // the name of the function
}

// body checks the expression that a function computes for each element of a list.
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
	case isNil(t.typ):
		return c.errorf(start(body.Node), "nil has no type here")
	case t.optional() && takesBody(n.Name, 'e'):
		return &term{node: body.Node, typ: anything}
	case takesBody(n.Name, 'e'):
		return &term{node: body.Node, typ: t.typ}
	}
	return &term{node: body.Node, typ: t.value().typ}
}

// takesBody reports whether the function takes an expression for each element, of a type with this letter.
func takesBody(name string, kind byte) bool {
	return strings.IndexByte(functions[name].takes, kind) > 0
}

// pointer lowers #, #index or #acc.
func (c *compiler) pointer(n *ast.PointerNode) *term {
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
	return c.onMachine(n, typ)
}
