package expr

import (
	"cmp"
	"go/constant"
	"go/types"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/annotations"
	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// wrapPath is the package of the runtime that generated code calls.
const wrapPath = naming.Wrap

// declares reports whether a name is that of a parameter, the receiver or a result, or of a function, variable or constant of the
// package.
func (e *Env) declares(name string) bool {
	if e.index(name) >= 0 {
		return true
	}
	switch e.Package.Scope().Lookup(name).(type) {
	case *types.Func, *types.Var, *types.Const:
		return true
	}
	return false
}

// variables returns the parameters, the receiver and the results.
func (e *Env) variables() []Param { return slices.Concat(e.Params, []Param{e.Receiver}, e.Results) }

// index returns the index of a name among the variables, or -1.
func (e *Env) index(name string) int {
	return slices.IndexFunc(e.variables(), func(p Param) bool { return p.Name == name && name != "" })
}

// words returns all names that an expression may use.
func (c *compiler) words() []string {
	words := []string{"method"}
	for _, name := range slices.Sorted(maps.Keys(ownFunctions)) {
		if isIdentity := ownFunctions[name].what != ""; isIdentity && c.env.hasContext() || !isIdentity && c.wanted == Duration {
			words = append(words, name)
		}
	}
	words = append(words, slices.Sorted(maps.Keys(c.lets))...)
	for _, v := range c.env.variables() {
		if v.Name != "" {
			words = append(words, v.Name)
		}
	}
	for _, name := range c.env.Package.Scope().Names() {
		if c.env.declares(name) {
			words = append(words, name)
		}
	}
	return words
}

// suggest returns the end of a message about an unknown word.
var suggest = annotations.Suggest

// name lowers an identifier. It looks among the variables of the expression, the parameters, the receiver, the results, the names that
// every expression has, and the declarations of the package, in this order.
func (c *compiler) name(n *ast.IdentifierNode) *term {
	if value, ok := c.lets[n.Value]; ok {
		here := *value
		here.node = n
		return &here
	}
	if i := c.env.index(n.Value); i >= 0 {
		return c.ofMethod(n, i)
	}
	if n.Value == c.env.Absent {
		return c.errorf(n, "a guard does not have the receiver %s; make what the rule needs a parameter", n.Value)
	}
	if c.env.Hidden(n.Value) {
		return c.errorf(n, "%s is a type parameter, which cannot be used here", n.Value)
	}
	switch n.Value {
	case "$env":
		return c.errorf(n, "there is no $env; write the name of a parameter")
	case "method":
		return literal(n, c.env.Method)
	}
	if own, ok := ownFunctions[n.Value]; ok {
		return c.errorf(n, "%s is a function; write %s", n.Value, own.usage)
	}
	switch o := c.env.Package.Scope().Lookup(n.Value).(type) {
	case *types.Var:
		return &term{node: n, typ: o.Type(), global: true, write: func(w *writer) operand { return variable(w.word(o.Name())) }}
	case *types.Const:
		return c.constant(n, o, func(w *writer) operand { return primary(w.word(o.Name())) })
	case *types.Func:
		return c.errorf(n, "%s is a function; call it: %s(...)", n.Value, n.Value)
	case *types.TypeName:
		return c.errorf(n, "%s is a type, which cannot be used here", n.Value)
	}
	if p := c.dotted(n); p != nil {
		return c.ofPackage(n, n, p, "")
	}
	if n.Value == "ctx" {
		return c.context(n)
	}
	if c.importedAs(n) != nil {
		return c.errorf(n, "%s is a package; write %s. and the name of one of its declarations", n.Value, n.Value)
	}
	if all := c.imported(n.Value); len(all) > 1 {
		return c.errorf(n, "%s", naming.OfSeveral(all))
	}
	return c.unknown(n, c.hint(n))
}

// unknown reports a name that means nothing. The hint is the end of the message.
func (c *compiler) unknown(n *ast.IdentifierNode, hint string) *term {
	c.errorf(n, "unknown name %s%s", n.Value, hint)
	c.errs[len(c.errs)-1].Unknown = annotations.Unknown{Name: n.Value, Suggestion: c.suggestion(n.Value)}
	return nil
}

// meant maps names that users may try to the names that they mean.
var meant = map[string]string{
	"ip": "clientIP(ctx)", "clientip": "clientIP(ctx)", "remoteip": "clientIP(ctx)", "ipaddress": "clientIP(ctx)",
	"userid": "userID(ctx)", "user": "userID(ctx)", "uid": "userID(ctx)", "null": "nil", "none": "nil",
}

// exported matches what stands behind the name of a package whose function is called.
var exported = regexp.MustCompile(`^\.[A-Z]\w*\(`)

// hint returns the end of a message about an unknown name: a suggestion, and the names of the parameters, receiver and results.
func (c *compiler) hint(n *ast.IdentifierNode) string {
	lists := []string{c.listed("parameter", c.env.Params), c.listed("receiver", []Param{c.env.Receiver}), c.listed("result", c.env.Results)}
	known := strings.Join(slices.DeleteFunc(lists, func(list string) bool { return list == "" }), ", ")
	likely := ";"
	text := c.expr.Value
	if behind := strings.TrimPrefix(text[offset(text, n.Location().From):], n.Value); exported.MatchString(behind) {
		likely = "; if it is a package, import it as _;"
	}
	return cmp.Or(c.suggestion(n.Value), likely) + " " + cmp.Or(known, "the method has no parameters")
}

// suggestion returns "; did you mean x?" if the user probably means a name that is known, or "".
func (c *compiler) suggestion(name string) string {
	likely := meant[strings.ReplaceAll(strings.ToLower(name), "_", "")]
	if likely != "" && (c.env.hasContext() || !strings.HasSuffix(likely, "(ctx)")) {
		return "; did you mean " + likely + "?"
	}
	for _, r := range c.env.Results { // an error without a name
		if name == "err" && types.Identical(r.Type, failure) {
			return "; did you mean " + r.Name + "?"
		}
	}
	return suggest(name, c.words())
}

// listed lists the names of at most 8 variables, with the types of those that have no name in Go.
func (c *compiler) listed(noun string, variables []Param) string {
	const most = 8
	var names []string
	for i, v := range variables {
		switch v.Name {
		case "":
		case "arg" + strconv.Itoa(i), "result" + strconv.Itoa(i):
			names = append(names, v.Name+" "+c.typeName(v.Type))
		default:
			names = append(names, v.Name)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return "the " + noun + " is " + names[0]
	case len(names) > most:
		names = append(names[:most], "...")
	}
	return "the " + noun + "s are " + strings.Join(names, ", ")
}

// ofMethod returns the term for variable i of the method.
func (c *compiler) ofMethod(n ast.Node, i int) *term {
	c.varies = true
	return &term{node: n, typ: c.env.variables()[i].Type, neverNil: i == len(c.env.Params), write: func(w *writer) operand {
		return primary(w.names.Variable(i)) // a method with a pointer receiver gets a copy, as it may change what is forwarded
	}}
}

// valid returns t unless its type is unknown.
func (c *compiler) valid(n ast.Node, t *term) *term {
	if t != nil && strings.Contains(types.TypeString(t.typ, nil), "invalid type") {
		return c.errorf(n, "the type of this is unknown: it is a type of C, or the package does not compile")
	}
	return t
}

// constant returns the term for a constant of a package.
func (c *compiler) constant(n ast.Node, o *types.Const, write func(*writer) operand) *term {
	t := &term{node: n, typ: types.Default(o.Type()), lit: is(o.Type(), types.IsUntyped), write: write}
	switch v := o.Val(); {
	case isBool(t.typ), isText(t.typ):
		t.con = constant.Val(v)
	case isFloat(t.typ):
		if f, _ := constant.Float64Val(v); !math.IsInf(f, 0) {
			t.con = f
		}
	case isInt(t.typ):
		if i, exact := constant.Int64Val(constant.ToInt(v)); exact {
			t.con = int(i)
			if t.lit && !represents(whole, i) {
				t.typ = types.Typ[types.Int64] // an int may have 32 bits
			}
		}
	default:
		return c.errorf(n, "%s cannot be used here: it is %s", n, c.a(t.typ))
	}
	switch {
	case t.con != nil:
	case isFloat(t.typ):
		return c.errorf(n, "%s does not fit a float64; write a function of the package that uses it", n)
	default:
		return c.errorf(n, "%s does not fit an int64; write a function of the package that uses it", n)
	}
	return t
}

// let lowers an expression that binds a name to a value:
//
//	owner := doc.Owner
//	return owner + ":" + owner
func (c *compiler) let(n *ast.VariableDeclaratorNode, each func(ast.Node) *term) *term {
	if c.lets[n.Name] != nil || c.env.declares(n.Name) {
		return c.errorf(n, "%s has a meaning already", n.Name)
	}
	c.declared++
	value := c.nullable(c.term(n.Value))
	switch {
	case value == nil:
		return nil
	case isNil(value.typ):
		return c.errorf(start(n.Value), "nil has no type here")
	}
	var name string
	used := false
	c.lets[n.Name] = &term{typ: value.typ, write: func(*writer) operand {
		used = true
		return variable(name)
	}}
	body := c.nullable(each(n.Expr))
	delete(c.lets, n.Name)
	if body == nil {
		return nil
	}
	return &term{node: n, typ: body.typ, choose: func(w *writer) string {
		assigned := w.typed(value).text
		name, used = w.names.Local(n.Name), false
		stmts := w.returned(body)
		if !used {
			return "_ = " + assigned + "\n" + stmts
		}
		return name + " := " + assigned + "\n" + stmts
	}}
}
