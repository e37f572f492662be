package pipeline

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// check reports generated code that does not compile, at the directives that it is generated from. It reports one error for each
// declaration, as others may be consequences.
func (r *Result) check(outputs []Output) {
	var files []*source.File
	for _, o := range outputs {
		syntax, err := parser.ParseFile(r.fset, o.Output, o.Text, parser.SkipObjectResolution)
		defer r.fset.RemoveFile(r.fset.File(syntax.FileStart))
		if err != nil {
			r.add("output", token.NoPos, "internal error: %v", err)
		}
		files = append(files, &source.File{Path: o.Output, Syntax: syntax})
	}
	reported := map[token.Pos]bool{}
	for _, e := range r.source.Loader.Compile(r.source, files) {
		i := slices.IndexFunc(files, func(f *source.File) bool { return f.Syntax.FileStart <= e.Pos && e.Pos < f.Syntax.FileEnd })
		pos, name := originOf(outputs[i].File, files[i].Syntax, e.Pos)
		if !reported[pos] {
			reported[pos] = true
			r.add("output", pos, "what is generated for %s does not compile: %s", name, e.Msg)
		}
	}
}

// originOf returns the directive that the generated code at pos comes from, and the name of its method or type.
func originOf(f *model.File, syntax *ast.File, pos token.Pos) (token.Pos, string) {
	for _, d := range syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.End() < pos { // the variables of a method stand above it
			continue
		}
		for _, w := range f.Wrappers {
			for _, m := range w.Methods {
				if w.Name != "" && source.Receiver(fn) == w.Name && m.Name == fn.Name.Name && len(m.Rules) > 0 {
					return m.Rules[0].Pos, w.Object.Name() + "." + m.Name
				}
			}
			if slices.Contains([]string{w.New, w.RulesFunc}, fn.Name.Name) || source.Receiver(fn) == w.Name && w.Name != "" {
				return w.Pos, w.Object.Name()
			}
		}
	}
	return f.Wrappers[0].Pos, f.Wrappers[0].Object.Name()
}
