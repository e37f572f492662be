package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// wrapper is an annotated type, with the texts that its declarations share.
type wrapper struct {
	*planned
	*model.Wrapper
	params, args string // its type parameters as a declaration has them, and as uses do; "" without any
	wrapped      string // the type of what is wrapped
	receiver     string // "" where a function wraps
}

// declarations returns what is declared for a type.
func (p *planned) declarations(of *model.Wrapper) (decls []*jen.Statement) {
	w := &wrapper{planned: p, Wrapper: of}
	w.params, w.args = p.typeParams(of)
	w.wrapped = of.Object.Name() + w.args
	switch of.Kind {
	case model.Func:
		return append(w.vars(of.Methods...), w.limitFunc(), w.rulesFunc())
	case model.Fields:
		return append(w.vars(of.Methods...), w.limitFields(), w.rulesFunc())
	case model.Concrete:
		w.wrapped = "*" + w.wrapped
	}
	next, limiter := fieldsOf(of)
	w.receiver = receiverOf(of)
	decls = append(decls, w.structType(next, limiter))
	if of.Kind == model.Interface {
		decls = append(decls, w.assertion())
	}
	decls = append(decls, w.constructor(next, limiter), w.rulesFunc())
	if !of.OwnRateLimits {
		decls = append(decls, comment("RateLimits returns the rules that the wrapper enforces.").
			Add(w.method("RateLimits")).Params().Id("[]"+p.ratelimit("Rule")).Block(jen.Return(jen.Id(w.RulesFunc+"()"))))
	}
	outer := append(of.TypeParamNames, w.receiver) // in the block of each method
	for _, m := range of.Methods {
		f := w.function(m, outer...)
		f.next, f.limiter = w.receiver+"."+next, w.receiver+"."+limiter
		f.target = f.next + "." + m.Name
		body := f.body()
		decls = append(append(decls, w.vars(m)...), comment(methodDoc(of, m)).Add(w.method(m.Name)).Add(f.signature()).Block(body...))
	}
	return decls
}

// method begins the declaration of a method of the wrapper.
func (w *wrapper) method(name string) *jen.Statement {
	return jen.Func().Params(jen.Id(w.receiver).Id("*" + w.Name + w.args)).Id(name)
}

// head begins the declaration of the function that wraps, whose parameters have these names.
func (w *wrapper) head(next, limiter string) *jen.Statement {
	return jen.Func().Id(w.New+w.params).Params(jen.Id(next).Id(w.wrapped), jen.Id(limiter).Id("*"+w.ratelimit("Limiter")))
}

// structType declares the type of the wrapper.
func (w *wrapper) structType(next, limiter string) *jen.Statement {
	var fields []jen.Code
	for _, t := range w.Embeds {
		fields = append(fields, jen.Id(w.imports.Type(t)))
	}
	if len(fields) > 0 {
		fields = append(fields, jen.Line())
	}
	fields = append(fields, jen.Id(next).Id(w.wrapped), jen.Id(limiter).Id("*"+w.ratelimit("Limiter")))
	return comment(typeDoc(w.Wrapper)).Type().Id(w.Name + w.params).Struct(fields...)
}

// constructor declares the function that makes a wrapper, whose fields have these names.
func (w *wrapper) constructor(next, limiter string) *jen.Statement {
	own := w.Name + w.args
	free := names.NewScope(w.TypeParamNames...)
	by, with := free.Take("next", "wrapped"), free.Take("limiter", "limits")
	value := literal("&"+own, next+": "+w.checked("Next", by), limiter+": "+w.checked("Limiter", with))
	return comment(fmt.Sprintf("%s wraps %s with the limits declared on %s.", w.New, by, link(w.Object.Name()))).
		Add(w.head(by, with)).Op("*").Id(own).Block(jen.Return(jen.Id(value)))
}

// checked writes the call of a function of package wrap that checks an argument of the function that wraps.
func (w *wrapper) checked(fn, value string) string {
	return w.wrap(fn) + "(" + quote(w.Scope) + ", " + value + ")"
}

// assertion makes an outdated wrapper a compile error that says what to do. For a generic one it is a function, so that no
// type argument has to be chosen.
func (w *wrapper) assertion() *jen.Statement {
	s := comment("If this does not compile, " + w.Object.Name() + ` has changed: run "go tool ratelimit" in this directory.`)
	assert := jen.Var().Id("_").Id(w.wrapped).Op("=").Parens(jen.Op("*").Id(w.Name + w.args)).Parens(jen.Nil())
	if w.params == "" {
		return s.Add(assert)
	}
	return s.Func().Id("_" + w.params).Params().Block(assert)
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
