package expr

import (
	"go/types"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// A machineFunction is one of expr's functions that is left to its machine.
type machineFunction struct {
	// takes are the lists of arguments, separated by spaces: s is a text, n an integer, l a list, m a map, z a
	// *time.Location, q a number or a list, a anything; a + repeats the letter before it.
	takes  string
	result func(c *compiler, args []*term) types.Type
}

func gives(t types.Type) func(*compiler, []*term) types.Type {
	return func(*compiler, []*term) types.Type { return t }
}

func givesStd(pkg, name string) func(*compiler, []*term) types.Type {
	return func(c *compiler, _ []*term) types.Type { return c.stdType(pkg, name) }
}

var float64Type = types.Typ[types.Float64]

var machineFunctions = map[string]machineFunction{
	"repeat":     {"sn", gives(text)},
	"type":       {"a", gives(text)},
	"toJSON":     {"a", gives(text)},
	"fromJSON":   {"s", gives(anything)},
	"toBase64":   {"s", gives(text)},
	"fromBase64": {"s", gives(text)},
	"mean":       {"q+", gives(float64Type)},
	"median":     {"q+", gives(float64Type)},
	"now":        {" z", givesStd("time", "Time")},
	"date":       {"s ss sss zs zss", givesStd("time", "Time")},
	"duration":   {"s", givesStd("time", "Duration")},
	"timezone": {"s", func(c *compiler, _ []*term) types.Type {
		if t := c.stdType("time", "Location"); !isAny(t) {
			return types.NewPointer(t)
		}
		return anything
	}},
	"first":     {"l", func(_ *compiler, args []*term) types.Type { return itemOf(args[0].typ) }},
	"last":      {"l", func(_ *compiler, args []*term) types.Type { return itemOf(args[0].typ) }},
	"get":       {"la ma", (*compiler).gotten},
	"take":      {"ln", func(_ *compiler, args []*term) types.Type { return sliceOf(args[0].typ) }},
	"reverse":   {"l", func(_ *compiler, args []*term) types.Type { return sliceOf(args[0].typ) }},
	"uniq":      {"l", func(_ *compiler, args []*term) types.Type { return sliceOf(args[0].typ) }},
	"sort":      {"l ls", func(_ *compiler, args []*term) types.Type { return sliceOf(args[0].typ) }},
	"flatten":   {"l", gives(types.NewSlice(anything))},
	"concat":    {"l+", joined},
	"keys":      {"m", func(_ *compiler, args []*term) types.Type { return types.NewSlice(keyOf(args[0].typ)) }},
	"values":    {"m", func(_ *compiler, args []*term) types.Type { return types.NewSlice(valueOf(args[0].typ)) }},
	"toPairs":   {"m", gives(types.NewSlice(types.NewArray(anything, 2)))},
	"fromPairs": {"l", gives(types.NewMap(anything, anything))},
}

// aggregates are the functions that look into lists, too.
var aggregates = map[string]bool{"min": true, "max": true}

func (c *compiler) machineFunction(n *ast.BuiltinNode, f machineFunction) *term {
	args, ok := c.terms(n.Arguments)
	if !ok {
		return nil
	}
	wrong := -1 // the argument that no list of arguments of this length has
	for form := range strings.SplitSeq(f.takes, " ") {
		at := misfit(form, args)
		if at < 0 {
			t := c.onMachine(n, f.result(c, args))
			if n.Name == "first" || n.Name == "last" || n.Name == "get" {
				t.mayBeNil()
			}
			return t
		}
		wrong = max(wrong, at)
	}
	if wrong < len(args) && c.lengthFits(f, len(args)) {
		return c.refuse(n, args[wrong])
	}
	return c.errorf(n, "%s does not take %s", n.Name, count(len(args), false, "argument"))
}

func (c *compiler) lengthFits(f machineFunction, n int) bool {
	for form := range strings.SplitSeq(f.takes, " ") {
		if len(form) == n || strings.HasSuffix(form, "+") && n > 0 {
			return true
		}
	}
	return false
}

// misfit returns the index of the first of args that the form does not take, or -1.
func misfit(form string, args []*term) int {
	for i, t := range args {
		kind := byte(0)
		if repeated := strings.IndexByte(form, '+'); repeated > 0 {
			kind = form[min(i, repeated-1)]
		} else if i < len(form) {
			kind = form[i]
		}
		if !takes(kind, t.value().typ) {
			return i
		}
	}
	if len(args) < len(strings.TrimSuffix(form, "+")) {
		return len(args)
	}
	return -1
}

func takes(kind byte, t types.Type) bool {
	_, isMap := aggregate(t).(*types.Map)
	switch kind {
	case 0:
		return false
	case 's':
		return isText(t) || isAny(t)
	case 'n':
		return isInt(t) || isAny(t)
	case 'l':
		return isList(t) || isAny(t)
	case 'm':
		return isMap || isAny(t)
	case 'q':
		return isNumber(t) || isList(t) || isAny(t)
	case 'z':
		return pointee(t) != nil && isNamed(pointee(t), "time", "Location")
	}
	return true
}

// machineResult is the type of a value of a function that lowers but for its arguments.
func (c *compiler) machineResult(name string, args []*term) types.Type {
	switch name {
	case "len", "int", "bitand", "bitor", "bitxor", "bitnand", "bitnot", "bitshl", "bitshr", "bitushr":
		return whole
	case "string":
		return text
	case "float", "ceil", "floor", "round":
		return float64Type
	}
	if elem := elemOf(args[0].typ); elem != nil && len(args) == 1 && isNumber(elem) {
		return total(elem)
	}
	return anything
}

func (c *compiler) gotten(args []*term) types.Type {
	if m, ok := aggregate(args[0].typ).(*types.Map); ok {
		return m.Elem()
	}
	return itemOf(args[0].typ)
}

// joined is the type of lists put together.
func joined(_ *compiler, args []*term) types.Type {
	items := make([]*term, len(args))
	for i, t := range args {
		items[i] = &term{typ: itemOf(t.typ)}
	}
	return types.NewSlice(common(items))
}

func keyOf(t types.Type) types.Type {
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Key()
	}
	return anything
}

func valueOf(t types.Type) types.Type {
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Elem()
	}
	return anything
}
