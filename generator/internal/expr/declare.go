package expr

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"sync"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// declaration is a line of functions.txt.
type declaration struct {
	*types.Signature
	name   string
	goName string // what gives the same result in Go, or ""
}

//go:embed functions.txt
var functionsText string

// functions are all functions and operators of expr that an expression may use.
var functions = sync.OnceValue(func() map[string][]declaration {
	var list []declaration
	src := "package expr; "
	for line := range strings.Lines(functionsText) {
		if i := strings.IndexAny(line, "[("); i > 0 && !strings.Contains(line[:i], " ") {
			signature, goName, _ := strings.Cut(strings.TrimSpace(line[i:]), " = ")
			list = append(list, declaration{name: line[:i], goName: goName})
			line = fmt.Sprintf("func f%d%s {}\n", len(list), signature)
		}
		src += line
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "functions.txt", src, 0)
	if err != nil {
		panic(err)
	}
	pkg, err := (&types.Config{IgnoreFuncBodies: true}).Check("expr", fset, []*ast.File{file}, nil)
	if err != nil {
		panic(err)
	}
	byName := map[string][]declaration{}
	for i, d := range list {
		d.Signature = pkg.Scope().Lookup(fmt.Sprintf("f%d", i+1)).(*types.Func).Signature()
		byName[d.name] = append(byName[d.name], d)
	}
	return byName
})

// result returns the type of the result of a call, or nil if d does not take the arguments. Then wrong is the index of the first
// argument that does not fit, or -1 if their number is wrong.
func (d declaration) result(args []*term) (t types.Type, wrong int) {
	if !takesAsMany(d.Signature, len(args)) {
		return nil, -1
	}
	bound := bindings{}
	for i, arg := range args {
		p, t := parameter(d.Signature, i), arg.typ
		if each, ok := p.(*types.Signature); ok {
			p = each.Results().At(0).Type()
			if arg.optional && isTypeParam(p) {
				t = anything
			} else if !isTypeParam(p) {
				t = arg.value().typ
			}
		}
		if !bound.takes(p, t) {
			return nil, i
		}
	}
	var stand []types.Type
	for p := range d.TypeParams().TypeParams() {
		stand = append(stand, cmp.Or(bound[p], anything))
	}
	if stand == nil {
		return d.Results().At(0).Type(), -1
	}
	called, _ := types.Instantiate(nil, d.Signature, stand, false)
	return called.(*types.Signature).Results().At(0).Type(), -1
}

// choose returns the first declaration that takes the arguments, and the type of its result. If several of different results may take
// them, as an argument is of type any, this is any. If none takes them, it is nil.
func choose(list []declaration, args []*term) (first declaration, result types.Type, wrong int) {
	wrong = -1
	dynamic := slices.ContainsFunc(args, func(t *term) bool { return isAny(t.typ) || isList(t.typ) && isAny(elemOf(t.typ)) })
	for _, d := range list {
		switch t, at := d.result(args); {
		case t == nil:
			wrong = max(wrong, at)
		case result == nil:
			first, result = d, t
		case dynamic && !types.Identical(t, result):
			result = anything
		}
	}
	return first, result, wrong
}

// bindings are the types of the arguments that type parameters stand for.
type bindings map[*types.TypeParam]types.Type

// takes reports whether a value of type t may be the argument for a parameter of type p, and binds the type parameters in p.
func (b bindings) takes(p, t types.Type) bool {
	switch p := p.(type) {
	case *types.TypeParam:
		if known := b[p]; known == nil {
			b[p] = t
		} else if !types.Identical(known, t) {
			b[p] = anything
		}
		return b.takes(p.Constraint(), t)
	case *types.Slice:
		return isAny(t) && b.takes(p.Elem(), anything) || isList(t) && b.takes(p.Elem(), elemOf(t))
	case *types.Map:
		m, ok := aggregate(t).(*types.Map)
		return isAny(t) && b.takes(p.Elem(), anything) || ok && b.takes(p.Elem(), m.Elem())
	}
	is := classes[types.TypeString(p, func(*types.Package) string { return "" })]
	return is == nil || mayBe(is, t)
}

// classes are the types that a parameter of functions.txt takes, by the name of its type. An any takes all.
var classes = map[string]func(types.Type) bool{
	"string": isText, "int": isInt, "float64": isNumber, "bool": isBool, "duration": isDuration, "moment": isTime,
	"integer": func(t types.Type) bool { return isInt(t) && !isDuration(t) },
	"number":  func(t types.Type) bool { return isNumber(t) && !isDuration(t) },
	"numbers": func(t types.Type) bool { return isNumber(t) || isList(t) },
	"zone":    func(t types.Type) bool { return pointee(t) != nil && reach.IsNamed(pointee(t), "time", "Location") },
}

// mayBe reports whether a value of type t is, or may be in some call, of a type with a property.
func mayBe(is func(types.Type) bool, t types.Type) bool { return isAny(t) || is(t) }

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
