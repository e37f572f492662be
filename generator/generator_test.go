package generator

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// TestFault expects an error after a panic in the generator, here because of a package without types.
func TestFault(t *testing.T) {
	fset := token.NewFileSet()
	src := "package x\n\n//ratelimit:rule limit=1 per=1m\ntype X interface{ M() error }\n"
	file, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{set: &load.Set{Fset: fset}}
	p := source.Checked(fset, types.NewPackage("x", "x"), nil, []*ast.File{file})
	if got := annotations.Join(r.pkg(p, load.Build{}).Messages(fset, "")); !strings.HasPrefix(got, "x.go:1:1: internal error: ") {
		t.Errorf("found %s", got)
	}
	if len(r.done) > 0 {
		t.Error("generated all the same")
	}
}

// TestFaultOutsideOfPackages makes an error of a panic before there are any packages, here one about a context that is nil.
func TestFaultOutsideOfPackages(t *testing.T) {
	var missing context.Context
	result, err := Generate(missing, Config{Dir: "testdata", Patterns: []string{"example.com/none"}})
	if result != nil || err == nil || !strings.HasPrefix(err.Error(), "internal error: ") {
		t.Errorf("found %v, %v", result, err)
	}
}
