package emit

import (
	"cmp"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// function is the generated function for a method, with the names of its variables.
type function struct {
	*planned
	*names.Scope
	method  *model.Method
	target  string // the function to call: next, or a method or field of it
	next    string // the wrapped value
	limiter string
	generic string // the type arguments of the wrapper, as in [K, V]
	params  []string
	passed  map[int]string // the variables with funcs that stand for parameters, by the indices of these
	results []string       // "" for results without names
	guards  bool           // the method belongs to a guard, so it calls no other
	done    string         // the result of a guard's method that looks back; "" if there is none
	failed  string         // the error beside done
	head    string         // what stands before the parameters
}

// function chooses the names of the variables of m. It keeps the user's names, except those that would hide a name that the body
// needs, such as those of imports and in outer.
func (w *wrapper) function(m *model.Method, outer ...string) *function {
	f := &function{planned: w.planned, Scope: w.block.Inside(w.imports.Names()...), method: m, generic: w.args, passed: map[int]string{}, head: "\treturn func"}
	if w.receiver != "" {
		f.head = "func (" + w.receiver + " *" + w.Name + w.args + ") " + m.Name
	}
	needed := append(w.needed(m), outer...)
	if m.Hold != nil {
		needed = append(needed, w.inResults(m)...)
	}
	f.Reserve(needed...)
	hidden := names.NewScope(needed...)
	if len(m.Rules)+len(m.Returns)+len(m.Passes) > 0 {
		hidden.Reserve(w.imports.Names()...)
	}
	for _, v := range variablesOf(m.Signature) {
		if !hidden.Has(v) {
			f.Reserve(v) // before other names are chosen
		}
	}
	ofParams := hidden.Inside()
	if w.Kind == model.Guard {
		ofParams.Reserve(w.inResults(m)...)
	}
	f.nameParams(ofParams)
	f.nameResults(hidden)
	return f
}

func (f *function) nameParams(hidden *names.Scope) {
	for i, p := range f.method.Params {
		otherwise := cmp.Or(p.Name, "arg")
		if i == f.method.Context && !f.method.ByMethod {
			otherwise = "ctx"
		}
		name := f.method.Signature.Params().At(i).Name()
		if isBlank(name) {
			name = f.Take(otherwise)
		} else {
			name = f.kept(name, hidden)
		}
		f.params = append(f.params, name)
	}
}

func (f *function) nameResults(hidden *names.Scope) {
	for i := range f.method.Results {
		name := f.method.Signature.Results().At(i).Name()
		switch {
		case isBlank(name):
		case f.changed(i):
			name = "_"
		default:
			name = f.kept(name, hidden)
		}
		f.results = append(f.results, name)
	}
}

// isBlank reports whether a parameter or result of this name cannot be used.
func isBlank(name string) bool { return name == "" || name == "_" }

// kept returns the user's name of a variable, or another one like it if the body needs the name for something else:
//
//	timeArg
func (f *function) kept(name string, hidden *names.Scope) string {
	if hidden.Has(name) {
		return f.Take(name + "Arg")
	}
	return name
}

// needed returns the identifiers that the body of m uses, without its variables and packages.
func (p *planned) needed(m *model.Method) []string {
	if len(m.Rules) == 0 {
		return nil
	}
	words := []string{"nil", p.rulesOf[m]}
	if looksBack(m) {
		words = append(words, "true", "false", "recover", "panic")
	}
	if f := m.Fallback; f != nil {
		words = append(words, "new")
		if f.Of != model.OfNext {
			words = append(words, cmp.Or(f.Qualifier, f.Name))
		}
	}
	for _, r := range m.Results {
		_, zero := p.zero(r.Type)
		words = append(words, zero...)
	}
	for _, r := range m.Rules {
		if r.When != nil || r.Cost != nil || r.Permits != nil || r.Settle != nil {
			words = append(words, "int64")
		}
		for _, c := range r.Codes() {
			words = append(words, c.Uses...)
			if c.Program != nil {
				words = append(words, p.programOf[c.Program])
			}
		}
	}
	return words
}

// inResults returns the identifiers in the types of the results. The bodies of guards, and of methods whose results hold permits, spell them out.
func (p *planned) inResults(m *model.Method) (words []string) {
	for _, r := range m.Results {
		words = append(words, names.Words(p.imports.Type(r.Type))...)
	}
	return words
}

// Import returns the name of a package in the body:
//
//	context
func (f *function) Import(p *types.Package) string { return f.imports.Name(p) }

// signature returns the parameters and results:
//
//	(ctx context.Context, phone string) (id int, err error)
func (f *function) signature() *jen.Statement {
	if len(f.results) == 0 {
		return f.parameters("")
	}
	types := make([]string, len(f.results))
	for i := range types {
		types[i] = f.resultType(i)
	}
	results := declared(f.results, types)
	return f.parameters("(" + strings.Join(results, ", ") + ")").Add(brackets(len(") "), results...))
}

// parameters returns the parameters in brackets. The results are the text that follows. For example:
//
//	(ctx context.Context, phone string)
func (f *function) parameters(results string) *jen.Statement {
	types := make([]string, len(f.params))
	for i, p := range f.method.Params {
		types[i] = f.imports.Type(p.Type)
	}
	if last := len(types) - 1; f.method.Signature.Variadic() {
		types[last] = "..." + strings.TrimPrefix(types[last], "[]")
	}
	return brackets(len(f.head+" "+results), declared(f.params, types)...)
}

// declared returns the declarations of variables. Neighbours of the same type share it:
//
//	a, b int, name string
func declared(names, types []string) (all []string) {
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
