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
	scope       *names.Scope
	method      *model.Method
	variable    string // the beginning of the names of the method's package-level variables: senderSend
	limits      string
	declared    []string // marks for the parameters in the signature
	params      []string // marks for the variables that have the values of parameters
	results     []string // marks, or "" and "_" for results without names
	head        string   // what stands before the parameters
	text        string   // the body
	withResults string   // the part of the body in which the results are in scope
}

// function returns the generated function for m. It keeps the user's names of variables, except those that would hide a name that the body
// needs, such as those of imports and in outer.
func (w *wrapper) function(m *model.Method, outer ...string) *function {
	f := &function{planned: w.planned, scope: w.block.Inside(types.Universe.Names()...), method: m, variable: w.variableOf(w.Wrapper, m), head: "\treturn func"}
	if w.receiver != "" {
		f.head = w.method(m.Name)
	}
	for i, p := range m.Params {
		hint := cmp.Or(p.Name, "arg")
		if i == m.Context && !m.ByMethod && names.IsBlank(m.Signature.Params().At(i).Name()) {
			hint = "ctx"
		}
		f.declared = append(f.declared, f.marks.New(hint))
	}
	for i := range m.Results {
		name := m.Signature.Results().At(i).Name()
		switch {
		case asWrapper(m.Returns[i]) && name != "":
			name = "_"
		case !names.IsBlank(name):
			name = f.marks.New(name)
		}
		f.results = append(f.results, name)
	}
	f.params = slices.Clone(f.declared)
	f.marks.Later(func() { f.choose(outer) })
	return f
}

// choose chooses the names of the parameters and results. Names in outer are in the scope around the function.
func (f *function) choose(outer []string) {
	outer = strings.Fields(f.marks.In(strings.Join(outer, " ")))
	f.scope.Reserve(outer...)
	hidden := names.NewScope(slices.Concat(f.namesIn(f.withResults), outer)...)
	if m := f.method; len(m.Rules)+len(m.Returns)+len(m.Takes) > 0 {
		hidden.Reserve(f.imports.Names()...)
	}
	for _, v := range variablesOf(f.method.Signature) {
		if !hidden.Has(v) {
			f.scope.Reserve(v) // before other names are chosen
		}
	}
	f.keep(f.declared, f.method.Signature.Params(), hidden.Inside(f.namesIn(f.text)...))
	f.keep(f.results, f.method.Signature.Results(), hidden)
}

// keep gives marks the user's names of variables, or other ones like them if the body needs the names for something else:
//
//	ctx, timeArg
func (f *function) keep(marks []string, variables *types.Tuple, hidden *names.Scope) {
	for i, mark := range marks {
		switch name := variables.At(i).Name(); {
		case names.IsBlank(mark): // a result without a name
		case names.IsBlank(name):
			f.marks.Set(mark, f.scope.Take(names.Wished(mark)))
		case hidden.Has(name):
			f.marks.Set(mark, f.scope.Take(name+"Arg"))
		}
	}
}

// Take returns a mark for the name of a variable in the body: the first hint, or the next one if it is taken.
func (f *function) Take(hints ...string) string { return f.marks.Take(f.scope, hints...) }

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
		types[i] = f.typeOf(f.method.Results[i].Type, f.method.Returns[i])
	}
	results := declarations(f.results, types)
	return f.parameters("("+strings.Join(results, ", ")+")") + brackets(") ", results...)
}

// parameters returns the parameters in brackets. The results are the text that follows. For example:
//
//	(ctx context.Context, phone string)
func (f *function) parameters(results string) string {
	types := make([]string, len(f.declared))
	for i, p := range f.method.Params {
		types[i] = f.typeOf(p.Type, f.method.Takes[i])
	}
	if last := len(types) - 1; f.method.Signature.Variadic() {
		types[last] = "..." + strings.TrimPrefix(types[last], "[]")
	}
	return brackets(f.head+" "+results, declarations(f.declared, types)...)
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
	if _, ok := types.Unalias(t).(*types.TypeParam); ok || t.Underlying() == types.Typ[types.Invalid] { // such as a type of C
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
