package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// wrapper returns the declarations of a wrapper.
func (p *planned) wrapper(w *model.Wrapper) []*jen.Statement {
	switch w.Kind {
	case model.Func:
		return []*jen.Statement{p.limitFunc(w)}
	case model.Fields:
		return []*jen.Statement{p.limitFields(w)}
	}
	params, args := p.typeParams(w)
	next, limiter := fieldsOf(w)
	wrapped, own := wrappedType(w)+args, w.Name+args
	decls := []*jen.Statement{
		comment(typeDoc(w)).Type().Id(w.Name+params).Struct(
			jen.Id(next).Id(wrapped),
			jen.Id(limiter).Id("*"+p.ratelimit("Limiter")),
		),
	}
	if w.Kind == model.Interface {
		decls = append(decls, p.assertion(w, params, wrapped, own))
	}
	decls = append(decls, p.constructor(w, next, limiter))
	receiver := p.receiverOf(w)
	outer := append(paramNames(w), receiver) // in the block of each method
	for _, m := range w.Methods {
		f := p.function(m, outer...)
		f.next, f.limiter, f.generic = receiver+"."+next, receiver+"."+limiter, args
		f.target = f.next + "." + m.Name
		decls = append(decls, f.declare(w, m, receiver, "*"+own))
	}
	return decls
}

// wrappedType is the type of the wrapped value, without type arguments.
func wrappedType(w *model.Wrapper) string {
	if w.Kind == model.Concrete {
		return "*" + w.Object.Name()
	}
	return w.Object.Name()
}

// constructor declares the function that makes a wrapper, whose fields have these names.
func (p *planned) constructor(w *model.Wrapper, next, limiter string) *jen.Statement {
	params, args := p.typeParams(w)
	wrapped, own := wrappedType(w)+args, w.Name+args
	free := names.NewScope(paramNames(w)...)
	by, with := free.Take("next", "wrapped"), free.Take("limiter", "limits")
	return comment(fmt.Sprintf("%s returns %s behind %s.", w.New, by, with)).Func().Id(w.New+params).
		Params(jen.Id(by).Id(wrapped), jen.Id(with).Id("*"+p.ratelimit("Limiter"))).Op("*").Id(own).
		Block(jen.Return(jen.Op("&").Id(own).Values(
			jen.Id(next).Op(":").Id(p.wrapped("Next", w, by)), jen.Id(limiter).Op(":").Id(p.wrapped("Limiter", w, with)),
		)))
}

// wrapped writes the call of a function of package wrap that checks an argument of the constructor of w.
func (p *planned) wrapped(fn string, w *model.Wrapper, value string) string {
	return p.wrap(fn) + "(" + quote(w.Scope) + ", " + value + ")"
}

// assertion makes an outdated wrapper a compile error that says what to do. For a generic one it is a function, so that no
// type argument has to be chosen.
func (p *planned) assertion(w *model.Wrapper, params, iface, own string) *jen.Statement {
	s := comment("If this does not compile, " + w.Object.Name() + ` has changed: run "go generate" in this directory.`)
	assert := jen.Var().Id("_").Id(iface).Op("=").Parens(jen.Op("*").Id(own)).Parens(jen.Nil())
	if params == "" {
		return s.Add(assert)
	}
	return s.Func().Id("_" + params).Params().Block(assert)
}

// typeParams returns the type parameters of w as its declaration has them, and as its uses do; both are "" without any.
func (p *planned) typeParams(w *model.Wrapper) (params, args string) {
	if w.TypeParams.Len() == 0 {
		return "", ""
	}
	var declared, used []string
	for t := range w.TypeParams.TypeParams() {
		constraint := p.imports.Type(t.Constraint())
		if strings.HasPrefix(constraint, "*") || strings.HasPrefix(constraint, "(") {
			constraint = "interface{ " + constraint + " }" // [P *int] would be the length of an array
		}
		declared = append(declared, t.Obj().Name()+" "+constraint)
		used = append(used, t.Obj().Name())
	}
	return "[" + strings.Join(declared, ", ") + "]", "[" + strings.Join(used, ", ") + "]"
}

// comment begins a declaration with its doc comment; text may be "".
func comment(text string) *jen.Statement {
	s := &jen.Statement{}
	if text = strings.TrimSpace(text); text == "" {
		return s
	}
	lines := strings.Split(text, "\n")
	withoutConstraints(lines)
	for i, l := range lines {
		lines[i] = strings.TrimRight("// "+l, " \t")
	}
	return s.Comment(strings.Join(lines, "\n")).Line()
}
