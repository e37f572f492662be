package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// limitFunc declares the function that wraps the values of a func type.
func (p *planned) limitFunc(w *model.Wrapper) *jen.Statement {
	taken := p.around(w)
	next, limiter := taken.Take("next", "wrapped"), taken.Take("limiter", "limits")
	m := w.Methods[0]
	f := p.function(m, next, limiter)
	_, args := p.typeParams(w)
	f.target, f.next, f.limiter, f.generic = next, next, limiter, args
	check := jen.Id(next + ", " + limiter + " = " + p.checked("Next", w, next) + ", " + p.checked("Limiter", w, limiter))
	return p.limit(w, next, limiter, check, jen.Return(f.literal(m)))
}

// limitFields declares the function that wraps the funcs in a struct.
func (p *planned) limitFields(w *model.Wrapper) *jen.Statement {
	taken := p.around(w)
	next, limiter, limited := taken.Take("next", "wrapped"), taken.Take("limiter", "limits"), taken.Take("limited", "copied")
	_, args := p.typeParams(w)
	body := []jen.Code{jen.Id(limiter + " = " + p.checked("Limiter", w, limiter)), jen.Id(limited).Op(":=").Id(next)}
	for _, m := range w.Methods {
		if len(m.Rules) == 0 {
			continue
		}
		f := p.function(m, next, limiter, limited)
		f.target, f.next, f.limiter, f.generic = next+"."+m.Name, next, limiter, args
		body = append(body, jen.If(jen.Id(f.target).Op("!=").Nil()).Block(
			jen.Id(limited).Dot(m.Name).Op("=").Add(f.literal(m)),
		))
	}
	return p.limit(w, next, limiter, append(body, jen.Return(jen.Id(limited)))...)
}

// limit declares the function of w.
func (p *planned) limit(w *model.Wrapper, next, limiter string, body ...jen.Code) *jen.Statement {
	params, args := p.typeParams(w)
	wrapped := w.Object.Name() + args
	return comment(limitDoc(w, next)).Func().Id(w.New+params).
		Params(jen.Id(next).Id(wrapped), jen.Id(limiter).Id("*"+p.ratelimit("Limiter"))).
		Id(wrapped).Block(body...)
}

// literal writes m as a function of its own.
func (f *function) literal(m *model.Method) *jen.Statement {
	body := f.body(m)
	return jen.Func().Params(f.parameters(m)...).Add(f.resultTypes(m)).Block(body...)
}
