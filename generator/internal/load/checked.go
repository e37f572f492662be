package load

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Checked returns a package that somebody else has parsed and checked, and that has no errors. All its files are asked for, but
// for what was generated.
func Checked(fset *token.FileSet, pkg *types.Package, files []*ast.File) *Package {
	p := &Package{Path: pkg.Path(), Types: pkg, Apart: true}
	for _, f := range files {
		if !IsGenerated(f) {
			p.Files = append(p.Files, &File{Path: fset.File(f.FileStart).Name(), Syntax: f, Annotated: true, Asked: true})
		}
	}
	return p
}

// IsGenerated reports whether f was generated.
func IsGenerated(f *ast.File) bool {
	return len(f.Comments) > 0 && f.Comments[0].List[0].Text == Header
}
