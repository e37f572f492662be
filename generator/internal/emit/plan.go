package emit

import (
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// planned holds the names in a generated file.
type planned struct {
	pkg     *types.Package
	block   *names.Scope // the names of the package and of type parameters, which no variable may hide
	marks   *names.Marks
	imports *names.Imports
	begin   names.Variables

	variables *names.Scope                       // the names of package-level variables
	typeOf    map[*model.Wrapper]string          // the variables with the rules of types
	rulesOf   map[*model.Method]string           // the variables with the rules of methods
	shared    []ofType                           // the rules of types that several methods have
	sharedAs  map[ofType]string                  // the variables with these rules
	ready     map[string]string                  // the variables with values that expressions need, by the Go of these
	vars      map[*model.Method][]*jen.Statement // the declarations of these variables, above the methods that need them first
}

// plan chooses the names that a file declares.
func plan(pkg *model.Package, f *model.File) *planned {
	marks := names.NewMarks()
	p := &planned{
		pkg: pkg.Types, block: names.NewScope(pkg.Declared...), marks: marks, imports: names.NewImports(pkg.Types, marks), begin: names.NewVariables(pkg.Annotated),
		typeOf: map[*model.Wrapper]string{}, rulesOf: map[*model.Method]string{}, sharedAs: map[ofType]string{},
		ready: map[string]string{}, vars: map[*model.Method][]*jen.Statement{},
	}
	variables := names.NewScope(slices.Concat(pkg.Declared, pkg.Imported)...)
	for _, w := range f.Wrappers {
		p.block.Reserve(typeParamNames(w)...) // they would hide packages of the same name
		variables.Reserve(typeParamNames(w)...)
	}
	for _, w := range f.Wrappers {
		p.typeOf[w] = variables.Take(p.begin.Of(w.Object.Name(), "") + "Type")
		p.addShared(w, variables)
		for _, m := range w.Methods {
			if len(m.Rules) > 0 {
				p.rulesOf[m] = variables.Take(p.variableOf(w, m) + "Rules")
			}
		}
	}
	p.variables = variables
	p.block.Reserve(slices.Concat(slices.Collect(maps.Values(p.typeOf)), slices.Collect(maps.Values(p.rulesOf)))...)
	marks.Later(func() { // before all variables
		p.imports.Plan(p.block)
		p.block.Reserve(p.imports.Names()...)
	})
	return p
}

// ratelimit returns a qualified name of package ratelimit:
//
//	ratelimit.Rule
func (p *planned) ratelimit(name string) string { return p.imports.Name(runtimePackage) + "." + name }

// wrap returns a qualified name of package wrap:
//
//	wrap.Take
func (p *planned) wrap(name string) string { return p.imports.Name(wrapPackage) + "." + name }

// variableOf returns the beginning of the names of the variables for m:
//
//	senderSend
func (p *planned) variableOf(w *model.Wrapper, m *model.Method) string {
	if w.Kind == model.Func {
		return p.begin.Of(w.Object.Name(), "Func")
	}
	return p.begin.Of(w.Object.Name(), m.Name)
}

func typeParamNames(w *model.Wrapper) (found []string) {
	for _, p := range w.TypeParams {
		found = append(found, p.Obj().Name())
	}
	return found
}

// variablesOf returns the names of the parameters and results.
func variablesOf(sig *types.Signature) []string {
	var found []string
	for _, tuple := range []*types.Tuple{sig.Params(), sig.Results()} {
		for v := range tuple.Variables() {
			if !names.IsBlank(v.Name()) {
				found = append(found, v.Name())
			}
		}
	}
	return found
}

// around returns a scope for the variables around the methods of w.
func (w *wrapper) around() *names.Scope {
	taken := w.block.Inside()
	for _, m := range w.Methods {
		taken.Reserve(variablesOf(m.Signature)...)
	}
	return taken
}

// receiverName returns the name of the receiver in all methods of a wrapper:
//
//	s
func (w *wrapper) receiverName() string {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(w.Object.Name(), "_0123456789"))
	first := string(unicode.ToLower(r))
	if !unicode.IsLetter(r) {
		first = "l"
	}
	return w.marks.Take(w.around(), first, "l", "limited")
}

// fieldsOf returns the names of the fields of w, which differ from those of its methods.
func fieldsOf(w *model.Wrapper) (next, limits, handedOut string) {
	methods := names.NewScope(w.Elsewhere...)
	for _, m := range w.Methods {
		methods.Reserve(m.Name)
	}
	return methods.Take("next", "wrapped"), methods.Take("limits", "limiter"), methods.Take("handedOut", "isHandedOut")
}
