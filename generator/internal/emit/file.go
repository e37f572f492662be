// Package emit generates the Go file for an annotated file. It makes no decisions about directives.
//
// Jennifer builds the declarations. The bodies of methods are text, because expressions and types come as text from packages expr
// and go/types.
package emit

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/types"
	"path/filepath"
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

// File returns the source of the file that is generated from f, a file of pkg that has wrappers. An error is a bug in the generator.
func File(pkg *model.Package, f *model.File) ([]byte, error) {
	p := plan(pkg, f)
	file := jen.NewFile(pkg.Types.Name())
	header := source.Header + "\n// Source: " + filepath.Base(f.Source)
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
		msg, _, _ := strings.Cut(err.Error(), " while formatting source:") // leaves out the source
		return nil, errors.New(strings.TrimPrefix(msg, "Error "))
	}
	return format.Source(src.Bytes()) // a second time, as gofmt changes some doc comments twice
}

// importDecl returns the import declaration. Packages of the module are grouped with those of other modules. For example:
//
//	import (
//		"context"
//
//		"github.com/ratelimit-go/ratelimit/runtime/wrap"
//	)
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
