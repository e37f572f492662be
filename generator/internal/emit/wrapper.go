package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
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
	wrapped, own := w.Object.Name()+args, w.Name+args
	if w.Kind == model.Concrete {
		wrapped = "*" + wrapped
	}
	pointer := "*" + own
	limiterType := jen.Op("*").Add(p.of(runtimePackage.Path(), "Limiter"))

	decls := []*jen.Statement{
		comment(typeDoc(w)).Type().Id(w.Name+params).Struct(
			jen.Id(next).Id(wrapped),
			jen.Id(limiter).Add(limiterType.Clone()),
		),
	}
	if w.Kind == model.Interface {
		decls = append(decls, p.assertion(w, params, wrapped, own))
	}
	decls = append(decls, comment(w.New+" returns next behind limiter.").Func().Id(w.New+params).
		Params(jen.Id("next").Id(wrapped), jen.Id("limiter").Add(limiterType)).Id(pointer).
		Block(jen.Return(jen.Op("&").Id(own).Values(
			jen.Id(next).Op(":").Id("next"), jen.Id(limiter).Op(":").Id("limiter"),
		))))
	receiver := p.receiverOf(w)
	for _, m := range w.Methods {
		f := p.function(m, receiver)
		f.next, f.limiter, f.generic = receiver+"."+next, receiver+"."+limiter, args
		f.target = f.next + "." + m.Name
		decls = append(decls, f.declare(w, m, receiver, pointer))
	}
	return decls
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
	for i, l := range lines {
		lines[i] = strings.TrimRight("// "+l, " \t")
	}
	return s.Comment(strings.Join(lines, "\n")).Line()
}
