package emit

import (
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/internal/fields"
)

// planned are the names of a file.
type planned struct {
	pkg     *types.Package
	imports *names.Imports
	begin   names.Variables
	rulesOf map[*model.Method]string // variables with the rules of methods
	programs
}

// plan names all that a file declares and imports.
func plan(pkg *model.Package, f *model.File) *planned {
	p := &planned{
		pkg: pkg.Types, imports: names.NewImports(pkg.Types), begin: names.NewVariables(pkg.Annotated),
		rulesOf: map[*model.Method]string{}, programs: programs{variables: map[*expr.Program]string{}},
	}
	block, variables := names.NewScope(pkg.Declared...), names.NewScope(slices.Concat(pkg.Declared, pkg.Imported)...)
	for _, w := range f.Wrappers {
		block.Reserve(w.TypeParamNames...) // which hide what else has their names
		variables.Reserve(w.TypeParamNames...)
	}
	for _, w := range f.Wrappers {
		for _, m := range w.Methods {
			if len(m.Rules) > 0 {
				p.rulesOf[m] = variables.Take(p.variableOf(w, m) + "Rules")
				p.addPrograms(w, m, variables)
			}
		}
	}
	for _, w := range f.Wrappers {
		for t := range w.TypeParams.TypeParams() {
			p.imports.AddAll(t.Constraint())
		}
		p.imports.Add(runtimePackage)
		p.imports.Add(wrapPackage)
		p.imports.AddAll(w.Embeds...)
		for _, m := range w.Methods {
			if w.Kind != model.Fields || len(m.Rules) > 0 { // other fields stay as they are
				p.addMethod(w, m)
			}
		}
	}
	p.imports.Plan(block)
	return p
}

// ratelimit is how the file spells a name of package ratelimit.
func (p *planned) ratelimit(name string) string { return p.imports.Name(names.Runtime) + "." + name }

// wrap is how the file spells a name of package wrap.
func (p *planned) wrap(name string) string { return p.imports.Name(names.Wrap) + "." + name }

// variableOf begins the name of the variable that holds the rules of m.
func (p *planned) variableOf(w *model.Wrapper, m *model.Method) string {
	if w.Kind == model.Func {
		return p.begin.Of(w.Object.Name(), "Func")
	}
	return p.begin.Of(w.Object.Name(), m.Name)
}

// addMethod adds what m imports. What its body names must not be hidden by its parameters.
func (p *planned) addMethod(w *model.Wrapper, m *model.Method) {
	p.imports.AddAll(m.Signature)
	if len(m.Rules) == 0 {
		return
	}
	variables := variablesOf(m.Signature)
	if w.Kind == model.Interface || w.Kind == model.Concrete {
		variables = append(variables, receiverOf(w))
	}
	for _, pkg := range bodyImports(m) {
		p.imports.Add(pkg)
		p.imports.Avoid(pkg.Path(), variables...)
	}
	for v := range m.Signature.Results().Variables() {
		if needsText(v.Type()) {
			for _, path := range p.imports.AddAll(v.Type()) {
				p.imports.Avoid(path, variables...)
			}
		}
	}
	for _, r := range m.Rules {
		for arg := range fields.Given(r.Limit) {
			if arg.Kind == annotations.DurationKind {
				p.imports.Add(timePackage)
			}
			if arg.Name == "tz" && r.Limit.TZ != "UTC" && p.pkg.Name() == "main" { // zones are linked into programs alone
				p.imports.Blank("time/tzdata")
			}
		}
	}
}

// bodyImports returns the packages that the body of a method with rules names, but for those in zero values.
func bodyImports(m *model.Method) []*types.Package {
	pkgs := []*types.Package{wrapPackage}
	if m.Context < 0 || mayLackContext(m) {
		pkgs = append(pkgs, contextPackage)
	}
	if m.Fallback != nil && m.Error >= 0 {
		pkgs = append(pkgs, errorsPackage, runtimePackage)
	}
	if m.Fallback != nil && m.Fallback.Import != nil {
		pkgs = append(pkgs, m.Fallback.Import)
	}
	for _, r := range m.Rules {
		for _, c := range r.Codes() {
			pkgs = append(pkgs, c.Imports...)
		}
	}
	return pkgs
}

// variablesOf returns the names of the parameters and results.
func variablesOf(sig *types.Signature) []string {
	var found []string
	for _, tuple := range []*types.Tuple{sig.Params(), sig.Results()} {
		for v := range tuple.Variables() {
			if v.Name() != "" && v.Name() != "_" {
				found = append(found, v.Name())
			}
		}
	}
	return found
}

// around are the names that variables around the methods of w must not have: what stands in the methods must not hide them.
func (p *planned) around(w *model.Wrapper) *names.Scope {
	taken := names.NewScope(p.imports.Names()...)
	taken.Reserve(w.TypeParamNames...)
	for _, m := range w.Methods {
		taken.Reserve(variablesOf(m.Signature)...)
		taken.Reserve(p.needed(m)...)
	}
	return taken
}

// receiverOf names the receiver of all methods of w. It does not depend on rules.
func receiverOf(w *model.Wrapper) string {
	taken := names.NewScope(w.TypeParamNames...)
	for _, m := range w.Methods {
		taken.Reserve(variablesOf(m.Signature)...)
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(w.Object.Name(), "_0123456789"))
	first := string(unicode.ToLower(r))
	if !unicode.IsLetter(r) {
		first = "l"
	}
	return taken.Take(first, "l", "limited")
}

// fieldsOf names the fields of w, which no method may be called.
func fieldsOf(w *model.Wrapper) (next, limiter string) {
	methods := names.NewScope()
	for _, m := range w.Methods {
		methods.Reserve(m.Name)
	}
	return methods.Take("next", "wrapped"), methods.Take("limiter", "limits")
}
