package emit

import (
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// function are the names in one function.
type function struct {
	*planned
	*names.Scope
	target  string // what is called: a method of next, a field of it, or itself
	next    string // the wrapped value
	limiter string
	generic string // the type arguments of the wrapper, as in [K, V]
	params  []string
	results []string // "" if they have no names
}

// function names the variables of m. The users' names stay, but where the body needs what they hide: what is outer among it.
func (p *planned) function(m *model.Method, outer ...string) *function {
	f := &function{planned: p, Scope: names.NewScope(p.imports.Names()...)}
	f.Reserve(outer...)
	needed := p.needed(m)
	f.Reserve(needed...)
	hidden := names.NewScope(needed...)
	hidden.Reserve(outer...)
	choose := func(name, otherwise string) string {
		switch {
		case name == "" || name == "_":
			return f.Take(otherwise)
		case hidden.Has(name):
			return f.Take(name + "Arg")
		}
		f.Reserve(name)
		return name
	}
	for _, v := range variablesOf(m.Signature) {
		if !hidden.Has(v) {
			f.Reserve(v) // before names are made up
		}
	}
	for i := range m.Signature.Params().Len() {
		otherwise := m.Params[i].Name
		if i == m.Context && !m.ByMethod {
			otherwise = "ctx"
		}
		f.params = append(f.params, choose(m.Signature.Params().At(i).Name(), otherwise))
	}
	for v := range m.Signature.Results().Variables() {
		if name := v.Name(); name == "" || name == "_" {
			f.results = append(f.results, name)
		} else {
			f.results = append(f.results, choose(name, ""))
		}
	}
	return f
}

// needed are the words that the body of m uses, but for variables and packages.
func (p *planned) needed(m *model.Method) []string {
	if len(m.Rules) == 0 {
		return nil
	}
	words := []string{"nil", p.rulesOf[m]}
	if refunds(m) || settles(m) {
		words = append(words, "true", "false")
	}
	if m.Fallback != nil {
		words = append(words, "new", strings.Split(m.Fallback.Func.Value, ".")[0])
	}
	for v := range m.Signature.Results().Variables() {
		words = append(words, p.zeroWords(v.Type())...)
	}
	for _, r := range m.Rules {
		if r.When != nil || r.Cost != nil || r.Permits != nil || r.Settle != nil {
			words = append(words, "int64")
		}
		for _, c := range r.Codes() {
			words = append(words, c.Uses...)
			if c.Program != nil {
				words = append(words, p.variables[c.Program])
			}
		}
	}
	return words
}
