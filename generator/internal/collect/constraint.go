package collect

import (
	"go/ast"
	"go/build"
	"go/build/constraint"
	"io"
	"path/filepath"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// constraintOf is the expression under which f is built: its //go:build line, what its name says (the name of the output
// does not end in _linux any more), and cgo if it imports C.
func constraintOf(f *source.File) string {
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
	for _, spec := range f.Syntax.Imports {
		if isC(spec) {
			terms = append(terms, "cgo")
		}
	}
	return conjunction(terms)
}

func isC(spec *ast.ImportSpec) bool { return spec.Path.Value == `"C"` || spec.Path.Value == "`C`" }

// conjunction is the expression that all terms are true; "" without any.
func conjunction(terms []string) string {
	x, err := constraint.Parse("//go:build (" + strings.Join(terms, ") && (") + ")")
	if err != nil { // there are none
		return ""
	}
	return x.String()
}

// impliedByName returns the system and the architecture that a file is for by its name, such as store_linux_amd64.go. go/build knows
// their names, but does not export them. So impliedByName asks where go/build builds the file. If it does so on a system called none,
// the name implies nothing. If it does so where the system and the architecture are both called by the last word, only that one counts.
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

// matches reports whether a file of this name is built where both the system and the architecture are called word.
func matches(name, word string) bool {
	c := build.Context{GOOS: word, GOARCH: word, Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}}
	ok, err := c.MatchFile("", name)
	return ok && err == nil
}
