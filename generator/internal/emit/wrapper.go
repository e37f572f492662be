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
		return append(p.allVars(w), p.limitFunc(w), p.rulesFunc(w))
	case model.Fields:
		return append(p.allVars(w), p.limitFields(w), p.rulesFunc(w))
	}
	next, limiter := fieldsOf(w)
	decls := []*jen.Statement{p.structType(w, next, limiter)}
	if w.Kind == model.Interface {
		decls = append(decls, p.assertion(w))
	}
	decls = append(decls, p.constructor(w, next, limiter), p.rulesFunc(w))
	receiver := receiverOf(w)
	if !w.OwnRateLimits {
		decls = append(decls, p.rateLimits(w, receiver))
	}
	_, args := p.typeParams(w)
	outer := append(w.TypeParamNames, receiver) // in the block of each method
	for _, m := range w.Methods {
		f := p.function(m, outer...)
		f.next, f.limiter, f.generic = receiver+"."+next, receiver+"."+limiter, args
		f.target = f.next + "." + m.Name
		decls = append(append(decls, p.vars(m)...), f.declare(w, m, receiver, "*"+w.Name+args))
	}
	return decls
}

// vars declares what stands above m.
func (p *planned) vars(m *model.Method) []*jen.Statement {
	if len(m.Rules) == 0 {
		return nil
	}
	return append(p.programVars(m), p.rulesVar(m))
}

// allVars declares the variables of all methods of w.
func (p *planned) allVars(w *model.Wrapper) (vars []*jen.Statement) {
	for _, m := range w.Methods {
		vars = append(vars, p.vars(m)...)
	}
	return vars
}

// structType declares the type of the wrapper.
func (p *planned) structType(w *model.Wrapper, next, limiter string) *jen.Statement {
	params, _ := p.typeParams(w)
	var fields []jen.Code
	for _, t := range w.Embeds {
		fields = append(fields, jen.Id(p.imports.Type(t)))
	}
	if len(fields) > 0 {
		fields = append(fields, jen.Line())
	}
	fields = append(fields, jen.Id(next).Id(p.wrappedType(w)), jen.Id(limiter).Id("*"+p.ratelimit("Limiter")))
	return comment(typeDoc(w)).Type().Id(w.Name + params).Struct(fields...)
}

// wrappedType is the type of the wrapped value.
func (p *planned) wrappedType(w *model.Wrapper) string {
	_, args := p.typeParams(w)
	if w.Kind == model.Concrete {
		return "*" + w.Object.Name() + args
	}
	return w.Object.Name() + args
}

// constructor declares the function that makes a wrapper, whose fields have these names.
func (p *planned) constructor(w *model.Wrapper, next, limiter string) *jen.Statement {
	params, args := p.typeParams(w)
	own := w.Name + args
	free := names.NewScope(w.TypeParamNames...)
	by, with := free.Take("next", "wrapped"), free.Take("limiter", "limits")
	value := literal("&"+own, next+": "+p.checked("Next", w, by), limiter+": "+p.checked("Limiter", w, with))
	return comment(fmt.Sprintf("%s wraps %s with the limits declared on %s.", w.New, by, link(w.Object.Name()))).Func().Id(w.New+params).
		Params(jen.Id(by).Id(p.wrappedType(w)), jen.Id(with).Id("*"+p.ratelimit("Limiter"))).Op("*").Id(own).
		Block(jen.Return(jen.Id(value)))
}

// checked writes the call of a function of package wrap that checks an argument of the constructor of w.
func (p *planned) checked(fn string, w *model.Wrapper, value string) string {
	return p.wrap(fn) + "(" + quote(w.Scope) + ", " + value + ")"
}

// rateLimits declares the method by which a wrapper is known to be one.
func (p *planned) rateLimits(w *model.Wrapper, receiver string) *jen.Statement {
	_, args := p.typeParams(w)
	return comment("RateLimits returns the rules that the wrapper enforces.").
		Func().Params(jen.Id(receiver).Id("*" + w.Name + args)).Id("RateLimits").Params().Id("[]" + p.ratelimit("Rule")).
		Block(jen.Return(jen.Id(w.RulesFunc + "()")))
}

// assertion makes an outdated wrapper a compile error that says what to do. For a generic one it is a function, so that no
// type argument has to be chosen.
func (p *planned) assertion(w *model.Wrapper) *jen.Statement {
	params, args := p.typeParams(w)
	s := comment("If this does not compile, " + w.Object.Name() + ` has changed: run "go tool ratelimit" in this directory.`)
	assert := jen.Var().Id("_").Id(p.wrappedType(w)).Op("=").Parens(jen.Op("*").Id(w.Name + args)).Parens(jen.Nil())
	if params == "" {
		return s.Add(assert)
	}
	return s.Func().Id("_" + params).Params().Block(assert)
}

// typeParams returns the type parameters of w as its declaration has them, and as its uses do; both are "" without any.
func (p *planned) typeParams(w *model.Wrapper) (params, args string) {
	if len(w.TypeParamNames) == 0 {
		return "", ""
	}
	var declared []string
	for i, name := range w.TypeParamNames {
		constraint := p.imports.Type(w.TypeParams.At(i).Constraint())
		if strings.HasPrefix(constraint, "*") || strings.HasPrefix(constraint, "(") {
			constraint = "interface{ " + constraint + " }" // [P *int] would be the length of an array
		}
		declared = append(declared, name+" "+constraint)
	}
	return "[" + strings.Join(declared, ", ") + "]", "[" + strings.Join(w.TypeParamNames, ", ") + "]"
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
