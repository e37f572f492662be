package expr

import (
	"go/types"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// A textFunction is one of expr's that is a function of package strings.
type textFunction struct {
	takes  string // of each argument: s a text, n an integer, l a list of texts
	fn     string
	more   string // what expr adds to the arguments
	result types.Type
}

var (
	text  = types.Typ[types.String]
	whole = types.Typ[types.Int]
	truth = types.Typ[types.Bool]
	list  = types.NewSlice(types.Typ[types.String])
)

// textFunctions are by name and number of arguments.
var textFunctions = map[string]textFunction{
	"lower/1":       {"s", "ToLower", "", text},
	"upper/1":       {"s", "ToUpper", "", text},
	"trim/1":        {"s", "TrimSpace", "", text},
	"trim/2":        {"ss", "Trim", "", text},
	"trimPrefix/1":  {"s", "TrimPrefix", `, " "`, text},
	"trimPrefix/2":  {"ss", "TrimPrefix", "", text},
	"trimSuffix/1":  {"s", "TrimSuffix", `, " "`, text},
	"trimSuffix/2":  {"ss", "TrimSuffix", "", text},
	"split/2":       {"ss", "Split", "", list},
	"split/3":       {"ssn", "SplitN", "", list},
	"splitAfter/2":  {"ss", "SplitAfter", "", list},
	"splitAfter/3":  {"ssn", "SplitAfterN", "", list},
	"replace/3":     {"sss", "ReplaceAll", "", text},
	"replace/4":     {"sssn", "Replace", "", text},
	"join/1":        {"l", "Join", `, ""`, text},
	"join/2":        {"ls", "Join", "", text},
	"indexOf/2":     {"ss", "Index", "", whole},
	"lastIndexOf/2": {"ss", "LastIndex", "", whole},
	"hasPrefix/2":   {"ss", "HasPrefix", "", truth},
	"hasSuffix/2":   {"ss", "HasSuffix", "", truth},
}

func (c *compiler) textFunction(n *ast.BuiltinNode) *term {
	f, ok := textFunctions[n.Name+"/"+strconv.Itoa(len(n.Arguments))]
	if !ok {
		return c.noFunction(n)
	}
	args, ok := c.terms(n.Arguments)
	for i, t := range args {
		if t == nil {
			continue
		}
		t = t.value()
		switch kind := f.takes[i]; {
		case isAny(t.typ), kind == 'l' && isList(t.typ) && (isText(elemOf(t.typ)) || isAny(elemOf(t.typ))) && !types.AssignableTo(t.typ, list):
			c.machine = true
		case kind == 's' && isText(t.typ):
			args[i] = t.asText()
		case kind == 'n' && isInt(t.typ):
			args[i] = t.whole()
		case kind == 'l' && types.AssignableTo(t.typ, list):
			args[i] = t
		default:
			c.refuse(n, t)
			ok = false
		}
	}
	if !ok {
		return nil
	}
	t := &term{node: n, typ: f.result, src: called(n.Name, args), hint: "text"}
	t.emit = func(w *writer) operand {
		o := w.callOf(w.std("strings", f.fn), w.all(args...))
		o.text = strings.TrimSuffix(o.text, ")") + f.more + ")"
		return o
	}
	return t
}

// noFunction reports a function of expr's that is called with the wrong number of arguments, or not known here.
func (c *compiler) noFunction(n *ast.BuiltinNode) *term {
	var counts []string
	for i := range 5 {
		if _, ok := textFunctions[n.Name+"/"+strconv.Itoa(i)]; ok {
			counts = append(counts, strconv.Itoa(i))
		}
	}
	if len(counts) > 0 {
		c.terms(n.Arguments)
		noun := map[bool]string{true: "argument", false: "arguments"}[counts[len(counts)-1] == "1"]
		return c.errorf(n, "%s takes %s %s, not %d", n.Name, strings.Join(counts, " or "), noun, len(n.Arguments))
	}
	return c.errorf(n, "%s is a function of expr that is not known here", n.Name)
}

// search lowers contains, startsWith and endsWith: false where a side is absent.
func (c *compiler) search(n *ast.BinaryNode, l, r *term) *term {
	if l.gone || r.gone {
		return c.unequal(n, false, l, r)
	}
	l, r = l.value(), r.value()
	if !isText(l.typ) || !isText(r.typ) {
		return c.mixed(n, l, r)
	}
	l, r = l.asText(), r.asText()
	fn := map[string]string{"contains": "Contains", "startsWith": "HasPrefix", "endsWith": "HasSuffix"}[n.Operator]
	write := func(w *writer, l, r operand) operand {
		return w.callOf(w.std("strings", fn), []operand{l, r})
	}
	switch {
	case l.try != nil && l.bare == nil && r.try == nil:
		return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
			o := r.emit(w)
			return w.guarded(false, l, func(w *writer, v operand) operand { return write(w, v, o) })
		}}
	}
	return &term{node: n, typ: truth, hint: "found", emit: func(w *writer) operand {
		o := w.all(l, r)
		return write(w, o[0], o[1])
	}}
}

// toText lowers string(x): what %v prints.
func (c *compiler) toText(n *ast.BuiltinNode, args []*term) *term {
	t := args[0]
	if t.mixed && (isText(t.typ) || hasMethods(t.typ)) {
		return c.onMachine(n, text)
	}
	for _, m := range []string{"Error", "String"} {
		if printer := c.printer(t.typ, m); printer != nil {
			return c.callMethod(n, t, m, types.Typ[types.String])
		}
	}
	switch b, ok := under(t.typ).(*types.Basic); {
	case isEnv(t.node), !isAny(t.typ) && !isNil(t.typ) && hasAddress(t.typ):
		return c.errorf(start(t.node), "string of %s may show an address, which is another one for each call", c.a(t.typ))
	case !ok, b.Info()&types.IsComplex != 0:
		return c.onMachine(n, text)
	case isText(t.typ):
		return t.plainly().asText()
	case is(t.typ, types.IsFloat) && t.mixed:
		return c.onMachine(n, text)
	case is(t.typ, types.IsFloat):
		return call(n, text, "fmt", "Sprint", t)
	}
	return stable(t)
}
