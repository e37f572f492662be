package expr

import (
	"cmp"
	goast "go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

var (
	text     = types.Typ[types.String]
	whole    = types.Typ[types.Int]
	fraction = types.Typ[types.Float64]
	truth    = types.Typ[types.Bool]
	anything = types.Universe.Lookup("any").Type()
)

// builtin lowers a call of a function of expr.
func (c *compiler) builtin(n *ast.BuiltinNode) *term {
	args := make([]*term, len(n.Arguments))
	for i, a := range n.Arguments {
		if _, isBody := a.(*ast.PredicateNode); !isBody {
			args[i] = c.valueOf(a)
		}
	}
	for i, a := range n.Arguments {
		if body, isBody := a.(*ast.PredicateNode); isBody && args[0] != nil {
			if isAny(args[0].typ) {
				return c.dynamic(args[0], nil)
			}
			args[i] = c.body(n, body, args)
		}
	}
	if slices.Contains(args, nil) {
		return nil
	}
	return c.apply(n, n.Name, args...)
}

// apply lowers a function or an operator.
func (c *compiler) apply(n ast.Node, name string, args ...*term) *term {
	d, sig, wrong := choose(functions()[name], args)
	if sig == nil {
		return c.misfit(n, name, args, wrong)
	}
	if t, done := c.fold(n, name, args...); done {
		return t
	}
	if at, err := tried(name, args); err != nil {
		return c.errorf(start(at), "%v", err)
	}
	if isFloat(sig.Results().At(0).Type()) && (name == "sum" || name == "mean") {
		c.inexact[n] = true
	}
	if method, ok := d.code.(*goast.SelectorExpr); ok { // c.len
		return c.special(method.Sel.Name, n, args)
	}
	args = c.fitted(d, sig, args)
	if slices.Contains(args, nil) {
		return nil
	}
	result := c.goType(sig.Results().At(0).Type())
	if code, ok := d.code.(*goast.BinaryExpr); ok {
		return infix(n, result, code.Op, args...)
	}
	byName := map[string][]*term{}
	for i, t := range args {
		p := sig.Params().At(min(i, sig.Params().Len()-1)).Name()
		byName[p] = append(byName[p], t)
	}
	t := &term{node: n, typ: result, write: func(w *writer) operand { return w.code(d.code, byName) }}
	if makers[name] {
		return c.read(t)
	}
	return t.value()
}

// makers are functions whose result may be much longer than their arguments.
var makers = map[string]bool{"replace": true, "join": true, "toJSON": true, "..": true}

// glances are functions that do not read a whole list or map.
var glances = map[string]bool{"first": true, "last": true, "get": true, "take": true}

// fitted returns the arguments in the types of the parameters. One is nil after an error.
func (c *compiler) fitted(d declaration, sig *types.Signature, args []*term) []*term {
	if slices.ContainsFunc(args, func(t *term) bool { return t.closure != nil }) {
		c.loops++
		defer func() { c.loops-- }()
	}
	all := make([]*term, len(args))
	for i, t := range args {
		switch {
		case glances[d.name] && isList(t.typ):
			all[i] = sliced(t)
		case glances[d.name] && isMap(t.typ):
			all[i] = t.sole()
		default:
			all[i] = c.argument(t, parameter(sig, i), classOf(parameter(d.Signature, i)))
		}
	}
	return all
}

// argument converts t for a parameter of a function of functions.txt. The class is the type of the parameter there.
func (c *compiler) argument(t *term, p types.Type, class string) *term {
	switch class {
	case "string":
		return c.read(t.as(types.String))
	case "int":
		return t.integer(types.Int)
	case "bits":
		return t.bits()
	case "integer":
		return t.integer(types.Int64)
	case "float64", "number":
		return t.as(types.Float64)
	case "bool":
		return t.as(types.Bool)
	}
	switch p := p.(type) {
	case *types.Slice:
		if list := c.listTo(t, p.Elem()); list != nil {
			return list
		}
		return c.errorf(start(t.node), "the elements of this are %s; expected %s", c.typeName(elemOf(t.typ)), c.typeName(p.Elem()))
	case *types.Map:
		return c.read(t.sole())
	case *types.Signature:
		return c.literal(t.closure, t.body.to(p.Results().At(0).Type()))
	case *types.Basic:
		v := t.to(p)
		return v.then(p, func(w *writer, _ operand) operand { return w.typed(v) })
	}
	if class == "K" || class == "R" {
		return c.assign(t, p, "this")
	}
	return t
}

// bits returns t, an integer, as an int with the same bits.
func (t *term) bits() *term {
	if wide(t.typ) {
		return t.converted(whole)
	}
	return t.integer(types.Int)
}

// read returns t, a text, a list or a map, in a form that counts the steps of reading it, if a loop may read it often, or if variables that
// consist of each other may have made it long:
//
//	wrap.ReadText(&work, each)
func (c *compiler) read(t *term) *term {
	fn := "ReadText"
	switch {
	case c.loops == 0 && c.declared < 2 || t.con != nil || t.items != nil:
		return t
	case isList(t.typ):
		fn = "ReadList"
	case isMap(t.typ):
		fn = "ReadMap"
	}
	return t.then(t.typ, func(w *writer, o operand) operand {
		w.fails = true
		return w.callOf(w.std(wrapPath, fn), w.counter(), o)
	})
}

// packages are the paths of the packages that functions.txt uses, if they differ from the names.
var packages = map[string]string{"utf8": "unicode/utf8", "wrap": wrapPath}

// code writes the Go of a declaration with its arguments, such as strings.TrimPrefix(text, " ").
func (w *writer) code(e goast.Expr, args map[string][]*term) operand {
	switch e := e.(type) {
	case *goast.Ident:
		return w.term(args[e.Name][0])
	case *goast.BasicLit:
		return primary(e.Value)
	case *goast.UnaryExpr:
		if e.Op == token.SUB && isLiteral(e.X) {
			return operand{text: "-" + e.X.(*goast.BasicLit).Value, prec: unary}
		}
		return operand{text: e.Op.String() + w.code(e.X, args).in(unary), prec: unary}
	case *goast.BinaryExpr:
		return join(e.Op, w.code(e.X, args), w.code(e.Y, args))
	case *goast.SelectorExpr:
		if x, ok := e.X.(*goast.Ident); !ok || args[x.Name] != nil {
			return primary(w.code(e.X, args).in(highest) + "." + e.Sel.Name)
		} else {
			return primary(w.std(pathOf(x.Name), e.Sel.Name))
		}
	}
	call := e.(*goast.CallExpr)
	var values []operand
	for _, a := range call.Args {
		if id, ok := a.(*goast.Ident); ok {
			values = append(values, w.all(args[id.Name]...)...)
		} else {
			values = append(values, w.code(a, args))
		}
	}
	fn := w.code(call.Fun, args).text
	if strings.HasSuffix(fn, ".Must") {
		return w.must(values[0])
	}
	return w.callOf(fn, values...)
}

func pathOf(name string) string {
	if path := packages[name]; path != "" {
		return path
	}
	return name
}

func isLiteral(e goast.Expr) bool {
	_, ok := e.(*goast.BasicLit)
	return ok
}

// goType returns the type of Go that a type of functions.txt stands for.
func (c *compiler) goType(t types.Type) types.Type {
	switch classOf(t) {
	case "duration":
		return c.ofTime("Duration", duration)
	case "moment":
		return c.ofTime("Time", moment)
	case "zone":
		return types.NewPointer(c.ofTime("Location", location))
	}
	return t
}

// misfit reports that an operator or a function does not take these arguments. The index of the wrong argument is -1 if their
// number is wrong.
func (c *compiler) misfit(n ast.Node, name string, args []*term, wrong int) *term {
	for i, t := range args {
		if isAny(t.typ) {
			return c.dynamic(t, c.wantedBy(name, i))
		} else if isList(t.typ) && isAny(elemOf(t.typ)) {
			return c.dynamic(t, nil)
		}
	}
	switch n := n.(type) {
	case *ast.BinaryNode:
		return c.mixed(n, args[0], args[1])
	case *ast.UnaryNode:
		return c.errorf(n, "%s cannot be used with %s", name, c.a(args[0].typ))
	case *ast.BuiltinNode:
		if wrong < 0 {
			break
		}
		if args[wrong].closure != nil {
			wanted := map[string]string{"sum": "number", "sortBy": "number or a text", "groupBy": "number or a text", "reduce": "value of one type"}[name]
			return c.errorf(start(args[wrong].node), "%s needs a %s here; this is %s", name, cmp.Or(wanted, "bool"), c.a(args[wrong].body.typ))
		}
		return c.errorf(start(args[wrong].node), "%s cannot be used with %s", name, c.a(args[wrong].typ))
	}
	return c.errorf(n, "wrong number of arguments for %s: %d", name, len(args))
}

// wantedBy returns the type of an argument that a function or an operator takes first, or nil if it is not a basic one.
func (c *compiler) wantedBy(name string, i int) types.Type {
	for _, d := range functions()[name] {
		if i < d.Params().Len() {
			if b, ok := parameter(d.Signature, i).Underlying().(*types.Basic); ok {
				return b
			}
		}
	}
	return nil
}

// goCall returns a call of a Go function. The path of a predeclared function is "".
func goCall(n ast.Node, t types.Type, path, fn string, args ...*term) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand { return w.callOf(w.std(path, fn), w.all(args...)...) }}
}

// goConstant returns a constant of the standard library.
func goConstant(n ast.Node, t types.Type, path, name string) *term {
	return &term{node: n, typ: t, write: func(w *writer) operand { return primary(w.std(path, name)) }}
}
