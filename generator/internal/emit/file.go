// Package emit writes the Go file of a file's annotated types. All names are settled before text is made. What a directive
// means was decided before: a diagnostic of this package is a fault of the generator.
//
// Jennifer builds the declarations. The bodies of methods are text, since expressions and types come as text from packages expr
// and go/types, which jennifer could only quote statement by statement.
package emit

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"runtime/debug"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/annotations"
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

// File returns the source of the file that is generated from f, a file of pkg with wrappers. A diagnostic is a fault of the
// generator; it stands at the wrapper that it fails for.
func File(pkg *model.Package, f *model.File) (src []byte, faults annotations.Diagnostics) {
	at := f.Wrappers[0]
	defer func() {
		if r := recover(); r != nil {
			faults.Add(at.Pos, "internal error: %v\n%s", r, debug.Stack())
		}
	}()
	fault := func(err error) annotations.Diagnostics {
		msg, _, _ := strings.Cut(err.Error(), " while formatting source:") // which would follow
		return annotations.Diagnostics{{Pos: at.Pos, Msg: "internal error: " + strings.TrimPrefix(msg, "Error ")}}
	}
	p := plan(pkg, f)
	var body bytes.Buffer
	for _, at = range f.Wrappers {
		for _, decl := range p.wrapper(at) {
			if err := render(&body, decl); err != nil {
				return nil, fault(err)
			}
		}
	}
	var file bytes.Buffer
	p.frame(&file, pkg, f.Constraint)
	file.Write(body.Bytes())
	at = f.Wrappers[0]
	src, err := format.Source(file.Bytes())
	if err != nil {
		return nil, fault(err)
	}
	return src, nil
}

func render(to *bytes.Buffer, decl *jen.Statement) error {
	to.WriteString("\n")
	if err := decl.Render(to); err != nil {
		return err
	}
	to.WriteString("\n")
	return nil
}

// frame writes what stands above the declarations.
func (p *planned) frame(to *bytes.Buffer, pkg *model.Package, constraint string) {
	fmt.Fprintf(to, "%s\n\n", source.Header)
	if constraint != "" {
		fmt.Fprintf(to, "//go:build %s\n\n", constraint)
	}
	fmt.Fprintf(to, "package %s\n", pkg.Types.Name())
	std, others := p.imports.Specs(pkg.Module)
	if len(std)+len(others) == 0 {
		return
	}
	fmt.Fprint(to, "\nimport (\n")
	for i, group := range [][]names.Spec{std, others} {
		if i > 0 && len(std) > 0 && len(others) > 0 {
			fmt.Fprintln(to)
		}
		for _, s := range group {
			fmt.Fprintf(to, "\t%s %q\n", s.Name, s.Path)
		}
	}
	fmt.Fprint(to, ")\n")
}
