package emit

import (
	"cmp"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// function is the generated function for a method, with the names of its variables.
type function struct {
	*planned
	*names.Scope
	method  *model.Method
	limits  string
	params  []string
	results []string // "" for results without names
	head    string   // what stands before the parameters
}

// function chooses the names of the variables of m. It keeps the user's names, except those that would hide a name that the body
// needs, such as those of imports and in outer.
func (w *wrapper) function(m *model.Method, outer ...string) *function {
	taken := w.block.Inside(slices.Concat(w.imports.Names(), types.Universe.Names(), outer)...)
	f := &function{planned: w.planned, Scope: taken, method: m, head: "\treturn func"}
	if w.receiver != "" {
		f.head = w.method(m.Name)
	}
	needed, known := w.needed[m]
	if !known { // in the draft all variables give way, so the body shows which names it needs
		needed = needs{variablesOf(m.Signature), nil}
	}
	hidden := names.NewScope(slices.Concat(needed.afterHead, outer)...)
	if len(m.Rules)+len(m.Returns)+len(m.Passes) > 0 {
		hidden.Reserve(w.imports.Names()...)
	}
	for _, v := range variablesOf(m.Signature) {
		if !hidden.Has(v) {
			f.Reserve(v) // before other names are chosen
		}
	}
	f.params = f.kept(m.Signature.Params(), hidden.Inside(needed.inHead...))
	for i, p := range m.Params {
		switch {
		case !names.IsBlank(f.params[i]):
		case i == m.Context && !m.ByMethod:
			f.params[i] = f.Take("ctx")
		default:
			f.params[i] = f.Take(cmp.Or(p.Name, "arg"))
		}
	}
	f.results = f.kept(m.Signature.Results(), hidden)
	for i, name := range f.results {
		if name != "" && f.changed(i) {
			f.results[i] = "_"
		}
	}
	return f
}

// kept returns the user's names of variables, or other ones like them if the body needs the names for something else:
//
//	ctx, timeArg
func (f *function) kept(variables *types.Tuple, hidden *names.Scope) (all []string) {
	for v := range variables.Variables() {
		name := v.Name()
		if hidden.Has(name) && !names.IsBlank(name) {
			name = f.Take(name + "Arg")
		}
		all = append(all, name)
	}
	return all
}

// needs are the predeclared and package-level names that the body of a method needs. Its variables give way to them. Those in the head of
// the func of a guard's method come before that func has variables with the results, so only parameters give way to them.
type needs struct{ afterHead, inHead []string }

// namesIn returns the predeclared and package-level names in Go code.
func (p *planned) namesIn(code string) (found []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(code)), []byte(code), nil, 0)
	for before := token.ILLEGAL; before != token.EOF; {
		_, tok, name := s.Scan()
		if tok == token.IDENT && before != token.PERIOD && (p.block.Has(name) || types.Universe.Lookup(name) != nil) {
			found = append(found, name)
		}
		before = tok
	}
	return found
}

// Import returns the name of a package in the body:
//
//	context
func (f *function) Import(p *types.Package) string { return f.imports.Name(p) }

// signature returns the parameters and results:
//
//	(ctx context.Context, phone string) (id int, err error)
func (f *function) signature() string {
	if len(f.results) == 0 {
		return f.parameters("")
	}
	types := make([]string, len(f.results))
	for i := range types {
		types[i] = f.resultType(i)
	}
	results := declarations(f.results, types)
	return f.parameters("("+strings.Join(results, ", ")+")") + brackets(len(") "), results...)
}

// parameters returns the parameters in brackets. The results are the text that follows. For example:
//
//	(ctx context.Context, phone string)
func (f *function) parameters(results string) string {
	types := make([]string, len(f.params))
	for i, p := range f.method.Params {
		types[i] = f.imports.Type(p.Type)
	}
	if last := len(types) - 1; f.method.Signature.Variadic() {
		types[last] = "..." + strings.TrimPrefix(types[last], "[]")
	}
	return brackets(len(f.head+" "+results), declarations(f.params, types)...)
}

// declarations returns the declarations of variables. Neighbours of the same type share it:
//
//	a, b int, name string
func declarations(names, types []string) (all []string) {
	begin := ""
	for i, t := range types {
		if names[i] != "" && i+1 < len(types) && t == types[i+1] {
			begin += names[i] + ", "
			continue
		}
		all, begin = append(all, strings.TrimSpace(begin+names[i]+" "+t)), ""
	}
	return all
}

// zero returns an expression for the zero value of t. For example:
//
//	Document{}
func (p *planned) zero(t types.Type) string {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "*new(" + p.imports.Type(t) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return "false"
		case info&types.IsNumeric != 0:
			return "0"
		case info&types.IsString != 0:
			return `""`
		}
	case *types.Struct, *types.Array:
		return p.imports.Type(t) + "{}"
	}
	return "nil"
}
