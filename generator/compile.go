package generator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// uncompilable reports generated code that does not compile, at the directives that it is generated from. It reports one error for each
// declaration, as others may be consequences.
func uncompilable(fset *token.FileSet, p *source.Package, pkg *model.Package, files []File) (found annotations.Diagnostics) {
	var outputs []*source.File
	for _, f := range files {
		if f.Source == nil {
			continue
		}
		syntax, err := parser.ParseFile(fset, f.Name, f.Source, parser.SkipObjectResolution)
		defer fset.RemoveFile(fset.File(syntax.FileStart))
		if err != nil {
			found.Add(token.NoPos, "internal error: %v", err)
		}
		outputs = append(outputs, &source.File{Path: f.Name, Syntax: syntax})
	}
	for _, e := range p.Loader.Compile(p, outputs) {
		i := slices.IndexFunc(outputs, func(o *source.File) bool { return o.Syntax.FileStart <= e.Pos && e.Pos < o.Syntax.FileEnd })
		file := pkg.Files[slices.IndexFunc(pkg.Files, func(f *model.File) bool { return f.Output == outputs[i].Path })]
		pos, name := originOf(file, outputs[i].Syntax, e.Pos)
		if !slices.ContainsFunc(found, func(d annotations.Diagnostic) bool { return d.Pos == pos }) {
			found.Add(pos, "what is generated for %s does not compile: %s", name, e.Msg)
		}
	}
	return found
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
