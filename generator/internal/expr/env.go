package expr

import (
	"go/constant"
	"go/types"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// wrapPath is the package that generated code finds clientIP and userID in.
const wrapPath = naming.Wrap

// identities are the names that stand for what a context carries, with the functions that find it.
var identities = map[string]struct{ fn, missing string }{
	"clientIP": {"ClientIP", "the context carries no client IP"},
	"userID":   {"UserID", "the context carries no user ID"},
}

// let is a variable of the expression's own.
type let struct {
	name  string
	value *term
	used  bool
}

// declares reports whether a name is one of the method's or of the package's.
func (e *Env) declares(name string) bool {
	if e.param(name) >= 0 {
		return true
	}
	switch e.Package.Scope().Lookup(name).(type) {
	case *types.Func, *types.Var, *types.Const:
		return true
	}
	return false
}

// param returns the index of a parameter, or -1.
func (e *Env) param(name string) int {
	return slices.IndexFunc(e.Params, func(p Param) bool { return p.Name == name })
}

func sortedCompact(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// words returns all names that mean something.
func (c *compiler) words() []string {
	var words []string
	for _, l := range c.lets {
		words = append(words, l.name)
	}
	for _, p := range c.env.Params {
		words = append(words, p.Name)
	}
	words = append(words, "method", "clientIP", "userID")
	for _, name := range c.env.Package.Scope().Names() {
		if c.env.declares(name) {
			words = append(words, name)
		}
	}
	return words
}

// suggest completes a message about an unknown word.
var suggest = annotations.Suggest

// name resolves an identifier: variables of the expression, parameters, our own names, the package's.
func (c *compiler) name(n *ast.IdentifierNode) *term {
	for _, l := range c.lets {
		if l.name == n.Value {
			l.used = true
			return l.value
		}
	}
	if i := c.env.param(n.Value); i >= 0 {
		return c.param(n, i)
	}
	switch n.Value {
	case envName:
		return c.environment(n)
	case "method":
		t := literal(n, c.env.Method)
		t.src = n.Value
		c.named(n.Value, t.emit)
		return t
	}
	if _, ok := identities[n.Value]; ok {
		return c.errorf(n, "%s is a function; write %s(ctx)", n.Value, n.Value)
	}
	switch o := c.env.Package.Scope().Lookup(n.Value).(type) {
	case *types.Var:
		return c.variable(n, n.Value, o.Type(), func(*writer) operand {
			v := variable(o.Name())
			v.stable = false // others may assign to it
			return v
		})
	case *types.Const:
		return c.constant(n, o)
	case *types.Func:
		return c.errorf(n, "%s is a function; call it: %s(...)", n.Value, n.Value)
	case *types.TypeName:
		return c.errorf(n, "%s is a type, which cannot be used here", n.Value)
	}
	switch strings.ToLower(n.Value) {
	case "null", "none":
		return c.errorf(n, "unknown name %s; did you mean nil?", n.Value)
	case "ctx":
		return c.errorf(n, "unknown name %s; %s has no parameter of that name", n.Value, c.env.Method[strings.LastIndexByte(c.env.Method, '.')+1:])
	}
	return c.errorf(n, "unknown name %s%s", n.Value, suggest(n.Value, c.words()))
}

// variable is a parameter or a variable of the package.
func (c *compiler) variable(n ast.Node, name string, t types.Type, emit func(*writer) operand) *term {
	if !c.valid(n, t) {
		return nil
	}
	c.named(name, emit)
	return &term{node: n, typ: t, src: name, hint: hintOf(name), emit: emit}
}

func (c *compiler) param(n ast.Node, i int) *term {
	p := c.env.Params[i]
	return c.variable(n, p.Name, p.Type, func(w *writer) operand { return variable(w.names.Param(i)) })
}

func (c *compiler) valid(n ast.Node, t types.Type) bool {
	if strings.Contains(types.TypeString(t, nil), "invalid type") {
		c.errorf(n, "the type of this is unknown: it is one of C, or the package does not compile")
		return false
	}
	return true
}

// constant is one of the package's.
func (c *compiler) constant(n *ast.IdentifierNode, o *types.Const) *term {
	if !c.valid(n, o.Type()) {
		return nil
	}
	t := &term{node: n, typ: types.Default(o.Type()), src: n.Value}
	b, _ := o.Type().Underlying().(*types.Basic)
	t.lit = b != nil && b.Info()&types.IsUntyped != 0
	switch v := o.Val(); v.Kind() {
	case constant.Bool:
		t.con = constant.BoolVal(v)
	case constant.String:
		t.con = constant.StringVal(v)
	case constant.Int, constant.Float:
		if !t.number(v) {
			return c.errorf(n, "%s does not fit an int", n.Value)
		}
	default:
		return c.errorf(n, "%s cannot be used here: it is a complex number", n.Value)
	}
	t.emit = func(*writer) operand {
		return operand{text: o.Name(), prec: highest, path: true, stable: true}
	}
	c.named(n.Value, t.emit)
	return t
}

func (t *term) number(v constant.Value) bool {
	if is(t.typ, types.IsFloat) {
		f, _ := constant.Float64Val(v)
		t.con = f
		return !math.IsInf(f, 0)
	}
	i, exact := constant.Int64Val(constant.ToInt(v))
	t.con = int(i)
	return exact
}

// let binds a name to a value that is computed once, where it is first needed by the order of the expression.
func (c *compiler) let(n *ast.VariableDeclaratorNode, each func(ast.Node) *term) *term {
	for _, l := range c.lets {
		if l.name == n.Name {
			return c.errorf(n, "%s is declared already", n.Name)
		}
	}
	if c.env.declares(n.Name) || n.Name == envName {
		return c.errorf(n, "%s has a meaning already", n.Name)
	}
	value := c.term(n.Value)
	if value != nil && isNil(value.typ) {
		value = c.errorf(start(n.Value), "nil has no type here")
	}
	if value != nil && value.optional() {
		value = c.maybe(n.Value, value.typ)
	}
	l := &let{name: n.Name, value: c.bound(n.Name, value)}
	c.lets = append(c.lets, l)
	body := each(n.Expr)
	c.lets = c.lets[:len(c.lets)-1]
	if !l.used {
		return c.errorf(n, "%s is not used", n.Name)
	}
	if value == nil || body == nil {
		return nil
	}
	return follow(l.value, body)
}

// bound is a term whose value is kept under a name.
func (c *compiler) bound(name string, value *term) *term {
	if value == nil || value.con != nil {
		return value
	}
	t := &term{node: value.node, typ: value.typ, within: value.within, src: name, hint: hintOf(name), mixed: value.mixed}
	if value.optional() {
		t.mayBeNil()
	}
	t.emit = func(w *writer) operand {
		o, ok := w.once[t]
		if !ok {
			if o = value.emit(w); !o.stable || !o.path {
				o = w.define(t.hint, o)
			}
			w.once[t] = o
		}
		return o
	}
	return t
}

// follow is body, with first computed before it.
func follow(first, body *term) *term {
	t := *body
	t.emit = func(w *writer) operand { first.emit(w); return body.emit(w) }
	if body.try != nil {
		t.try = func(w *writer) operand { first.emit(w); return body.try(w) }
	}
	return &t
}
