package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// declare writes a method of a wrapper.
func (f *function) declare(w *model.Wrapper, m *model.Method, receiver, own string) *jen.Statement {
	body := f.body(m)
	return comment(methodDoc(w, m)).
		Func().Params(jen.Id(receiver).Id(own)).Id(m.Name).
		Params(f.parameters(m)...).Add(f.resultTypes(m)).
		Block(body...)
}

// parameters writes the parameters; neighbours of one type share it, as one would write.
func (f *function) parameters(m *model.Method) []jen.Code {
	var codes []jen.Code
	n := m.Signature.Params().Len()
	text := func(i int) string {
		t := f.imports.Type(m.Signature.Params().At(i).Type())
		if m.Signature.Variadic() && i == n-1 {
			return "..." + strings.TrimPrefix(t, "[]")
		}
		return t
	}
	for i := range n {
		if i+1 < n && text(i) == text(i+1) {
			codes = append(codes, jen.Id(f.params[i]))
		} else {
			codes = append(codes, jen.Id(f.params[i]).Id(text(i)))
		}
	}
	return codes
}

func (f *function) resultTypes(m *model.Method) *jen.Statement {
	results := m.Signature.Results()
	s := &jen.Statement{}
	if results.Len() == 1 && f.results[0] == "" {
		return s.Id(f.imports.Type(results.At(0).Type()))
	}
	var codes []jen.Code
	for i := range results.Len() {
		t := f.imports.Type(results.At(i).Type())
		codes = append(codes, jen.Id(strings.TrimSpace(f.results[i]+" "+t)))
	}
	if len(codes) > 0 {
		s.Params(codes...)
	}
	return s
}
