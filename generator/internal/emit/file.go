// Package emit writes the Go file of a file's annotated types. What a directive means was decided before.
//
// Jennifer builds the declarations. The bodies of methods are text, since expressions and types come as text from packages expr
// and go/types, which jennifer could only quote statement by statement.
package emit

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

var (
	errorsPackage  = types.NewPackage("errors", "errors")
	contextPackage = types.NewPackage("context", "context")
	timePackage    = types.NewPackage("time", "time")
	runtimePackage = types.NewPackage(names.Runtime, "ratelimit")
	wrapPackage    = types.NewPackage(names.Wrap, "wrap")
)

// File returns the source of the file that is generated from f, a file of pkg with wrappers. An error is a fault of the generator.
func File(pkg *model.Package, f *model.File) ([]byte, error) {
	p := plan(pkg, f)
	file := jen.NewFile(pkg.Types.Name())
	header := source.Header
	if f.Constraint != "" {
		header += "\n\n//go:build " + f.Constraint
	}
	file.HeaderComment(header)
	file.Id(p.importDecl(pkg.Module))
	for _, w := range f.Wrappers {
		for _, decl := range p.declarations(w) {
			file.Line().Add(decl)
		}
	}
	var src bytes.Buffer
	if err := file.Render(&src); err != nil {
		msg, _, _ := strings.Cut(err.Error(), " while formatting source:") // which would follow
		return nil, errors.New(strings.TrimPrefix(msg, "Error "))
	}
	return format.Source(src.Bytes()) // again, as some doc comments need
}

// importDecl writes the import declaration of a file of a module.
func (p *planned) importDecl(module string) string {
	var b strings.Builder
	std, others := p.imports.Specs(module)
	for _, group := range [][]names.Spec{std, others} {
		for _, s := range group {
			fmt.Fprintf(&b, "%s %q\n", s.Name, s.Path)
		}
		b.WriteString("\n")
	}
	return "import (\n" + strings.TrimSpace(b.String()) + "\n)"
}
