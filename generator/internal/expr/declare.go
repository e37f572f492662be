package expr

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// declaration is a line of functions.txt.
type declaration struct {
	*types.Signature
	name string
	code ast.Expr // the Go that it becomes
}

//go:embed functions.txt
var functionsText string

// functions are all functions and operators of expr that an expression may use.
var functions = sync.OnceValue(func() map[string][]declaration {
	var list []declaration
	src := "package expr; "
	for line := range strings.Lines(functionsText) {
		if i := strings.IndexAny(line, "[("); i > 0 && !strings.Contains(line[:i], " ") {
			signature, code, _ := strings.Cut(strings.TrimSpace(line[i:]), " = ")
			list = append(list, declaration{name: line[:i], code: must1(parser.ParseExpr(code))})
			line = fmt.Sprintf("func f%d%s {}\n", len(list), signature)
		}
		src += line
	}
	fset := token.NewFileSet()
	file := must1(parser.ParseFile(fset, "functions.txt", src, 0))
	pkg := must1((&types.Config{IgnoreFuncBodies: true, Error: func(error) {}}).Check("expr", fset, []*ast.File{file}, nil))
	byName := map[string][]declaration{}
	for i, d := range list {
		d.Signature = pkg.Scope().Lookup(fmt.Sprintf("f%d", i+1)).(*types.Func).Signature()
		byName[d.name] = append(byName[d.name], d)
	}
	return byName
})

// bound returns the signature with the types of the arguments in place of the type parameters, or nil if d does not take the arguments.
// Then wrong is the index of the first argument that does not fit, or -1 if their number is wrong.
func (d declaration) bound(args []*term) (sig *types.Signature, wrong int) {
	if !takesAsMany(d.Signature, len(args)) {
		return nil, -1
	}
	known := bindings{}
	for i, arg := range args {
		if !known.takes(parameter(d.Signature, i), arg) {
			return nil, i
		}
	}
	var stand []types.Type
	for p := range d.TypeParams().TypeParams() {
		stand = append(stand, cmp.Or(known[p], anything))
	}
	if stand == nil {
		return d.Signature, -1
	}
	called, _ := types.Instantiate(nil, d.Signature, stand, false)
	return called.(*types.Signature), -1
}

// choose returns the first declaration that takes the arguments, and its signature for them. If none does, the signature is nil.
func choose(list []declaration, args []*term) (first declaration, sig *types.Signature, wrong int) {
	wrong = -1
	for _, d := range list {
		sig, at := d.bound(args)
		if sig != nil {
			return d, sig, -1
		}
		wrong = max(wrong, at)
	}
	return first, nil, wrong
}

// bindings are the types that type parameters stand for.
type bindings map[*types.TypeParam]types.Type

// takes reports whether t may be the argument for a parameter of type p, and binds the type parameters in p.
func (b bindings) takes(p types.Type, t *term) bool {
	typ := t.typ
	switch p := p.(type) {
	case *types.TypeParam:
		class := classOf(p.Constraint())
		switch known := b[p]; {
		case known != nil:
			return isAny(known) || t.convertedTo(known) != nil || types.AssignableTo(typ, known)
		case class == "int" || class == "float64":
			typ = t.unnamed().typ
		}
		b[p] = typ
		return classes[class](typ)
	case *types.Slice:
		elem := elemOf(typ)
		return elem != nil && b.takes(p.Elem(), &term{typ: elem})
	case *types.Map:
		m, ok := under(typ).(*types.Map)
		return ok && b.takes(p.Key(), &term{typ: m.Key()}) && b.takes(p.Elem(), &term{typ: m.Elem()})
	case *types.Signature:
		return t.closure != nil && b.takes(p.Results().At(0).Type(), &term{typ: t.body.typ})
	}
	return classes[classOf(p)](typ)
}

// classOf returns the name of a type of functions.txt.
func classOf(t types.Type) string {
	return types.TypeString(t, func(*types.Package) string { return "" })
}

// classes are the types that a parameter of functions.txt takes, by the name of its type.
var classes = map[string]func(types.Type) bool{
	"any": func(types.Type) bool { return true }, "unknown": isAny, "comparable": func(t types.Type) bool { return types.Comparable(t) && !isAny(t) && pointee(t) == nil },
	"string": isText, "int": isInt, "float64": isNumber, "bool": isBool, "bits": isInt, "duration": isDuration, "moment": isTime,
	"integer": func(t types.Type) bool { return isInt(t) && !isDuration(t) },
	"number":  func(t types.Type) bool { return isNumber(t) && !isDuration(t) },
	"numbers": func(t types.Type) bool { return isNumber(t) || isList(t) && isNumber(elemOf(t)) },
	"ordered": func(t types.Type) bool { return is(t, types.IsOrdered) },
	"zone":    func(t types.Type) bool { return pointee(t) != nil && reach.IsNamed(pointee(t), "time", "Location") },
}

// parameter returns the type of the parameter for argument i of a call.
func parameter(sig *types.Signature, i int) types.Type {
	last := sig.Params().Len() - 1
	if sig.Variadic() && i >= last {
		return sig.Params().At(last).Type().(*types.Slice).Elem()
	}
	return sig.Params().At(i).Type()
}

// takesAsMany reports whether a function may be called with n arguments.
func takesAsMany(sig *types.Signature, n int) bool {
	fixed := sig.Params().Len()
	return n == fixed || sig.Variadic() && n >= fixed-1
}

// must1 returns v. An error is a fault of functions.txt.
func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
