package collect

import (
	"go/ast"
	"go/build"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// ConstraintOf returns the build constraint of f as an expression, or "". It joins the //go:build line, the system and the
// architecture in the name of the file, which the name of the output does not end with, and cgo if the file imports C.
func ConstraintOf(f *source.File) string {
	var terms []string
	for _, cg := range f.Syntax.Comments {
		for _, c := range cg.List {
			if c.Pos() < f.Syntax.Package && constraint.IsGoBuild(c.Text) {
				if x, err := constraint.Parse(c.Text); err == nil {
					terms = append(terms, x.String())
				}
			}
		}
	}
	terms = append(terms, impliedByName(f.Path)...)
	if importsC(f) {
		terms = append(terms, "cgo")
	}
	return conjunction(terms)
}

// ConstraintAt returns the build constraint of the file at a path, or "" if the file cannot be read.
func ConstraintAt(path string) string {
	syntax, _ := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
	if syntax == nil {
		return ""
	}
	return ConstraintOf(&source.File{Path: path, Syntax: syntax})
}

// importsC reports whether a file uses cgo.
func importsC(f *source.File) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"C"` || spec.Path.Value == "`C`" })
}

// conjunction returns an expression that is true if all terms are, or "" if there are no terms.
func conjunction(terms []string) string {
	x, err := constraint.Parse("//go:build (" + strings.Join(terms, ") && (") + ")")
	if err != nil { // no terms
		return ""
	}
	return x.String()
}

// impliedByName returns the system and the architecture in the name of a file, such as store_linux_amd64.go. go/build does not
// export the list of systems and architectures, so impliedByName asks where go/build would build the file. If that includes a
// system called none, the name implies nothing. If it includes a system and an architecture that are both called by the last word
// of the name, the last word is the only constraint.
func impliedByName(path string) []string {
	base := filepath.Base(path)
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(base, ".go"), "_test"), "_")
	last := len(words) - 1
	switch {
	case matches(base, "none"):
		return nil
	case matches(base, words[last]):
		return words[last:]
	}
	return words[last-1:]
}

// matches reports whether go/build would build a file of this name if both the system and the architecture were called word.
func matches(name, word string) bool {
	c := build.Context{GOOS: word, GOARCH: word, Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}}
	ok, err := c.MatchFile("", name)
	return ok && err == nil
}
