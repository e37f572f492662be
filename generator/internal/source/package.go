// Package source holds packages that were parsed and checked: what package load makes, and package collect reads. It also knows
// the syntax of declarations, and the names of what is generated from them.
package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// Package is a package with annotated files. Its function bodies are parsed, not checked.
type Package struct {
	Path   string
	Module string // the path of its module, "" without one
	Types  *types.Package
	Files  []*File
	Others []*File                 // which are of the package as well, but in tests or in other builds alone
	Errors annotations.Diagnostics // of the type checker

	// Importer gives packages that this one imports, directly or not, with all their exported names. It loads them when it is
	// asked. It is nil where somebody else has checked the package, so that nothing is known of packages that it does not import.
	Importer types.Importer
	Info     *types.Info // as NewInfo makes it, or with more
	StandIns []string    // the types that are declared for what is to be generated
}

// NewInfo returns what the type checker has to fill for a package.
func NewInfo() *types.Info {
	return &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}}
}

// File is a parsed file.
type File struct {
	Path   string
	Syntax *ast.File
	Asked  bool // it holds a directive, or what looks like one, and is to be generated from
}

// IsTest reports whether only tests are built from the file.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Import returns p itself, or a package that it imports, directly or not; nil if it does not, or if that is not known.
func (p *Package) Import(path string) *types.Package {
	if path == p.Types.Path() {
		return p.Types
	}
	if p.Importer != nil {
		found, _ := p.Importer.Import(path)
		return found
	}
	return p.imported(path)
}

// imported returns a package that p imports directly, or nil.
func (p *Package) imported(path string) *types.Package {
	for _, i := range p.Types.Imports() {
		if i.Path() == path {
			return i
		}
	}
	return nil
}

// Named returns what an expression such as T, *T or pkg.T[int] in a declaration of p names; nil if it names nothing.
func (p *Package) Named(e ast.Expr) types.Object {
	switch e := Bare(e).(type) {
	case *ast.Ident:
		return p.Info.Uses[e]
	case *ast.SelectorExpr:
		return p.Info.Uses[e.Sel]
	}
	return nil
}

// TypeName returns the declaration of the named type that t is or points to; nil if it is none.
func TypeName(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// ImportedAs returns the package that the file around a position imports under a name, or, as _, for its directives alone.
func (p *Package) ImportedAs(in token.Pos, name string) *types.Package {
	for _, f := range p.Files {
		for _, spec := range f.Syntax.Imports {
			as := p.Info.PkgNameOf(spec)
			if in < f.Syntax.FileStart || in >= f.Syntax.FileEnd || as == nil {
				continue
			}
			if as.Name() == name || as.Name() == "_" && as.Imported().Name() == name {
				return as.Imported()
			}
		}
	}
	return nil
}

// Unimported returns the errors that tell which imports are not to be had.
func (p *Package) Unimported() annotations.Diagnostics {
	return slices.DeleteFunc(slices.Clone(p.Errors), func(e annotations.Diagnostic) bool {
		return !strings.HasPrefix(e.Msg, "could not import ")
	})
}

// NoteFault makes an error of a panic, which is a fault of the generator. It is for defer.
func (p *Package) NoteFault(found *annotations.Diagnostics) {
	fault := recover()
	if fault == nil {
		return
	}
	at := token.NoPos
	if len(p.Files) > 0 {
		at = p.Files[0].Syntax.Package
	}
	*found = append(*found, annotations.Diagnostic{Pos: at, Code: "internal", Msg: fmt.Sprintf("internal error: %v\n%s", fault, debug.Stack())})
}

// Checked returns a package that somebody else has parsed and checked, and that has no errors. All its files are asked for, but
// for what was generated.
func Checked(fset *token.FileSet, pkg *types.Package, info *types.Info, files []*ast.File) *Package {
	p := &Package{Path: pkg.Path(), Types: pkg, Info: info}
	for _, f := range files {
		if IsGenerated(f) {
			continue
		}
		p.Files = append(p.Files, &File{Path: fset.File(f.FileStart).Name(), Syntax: f, Asked: true})
	}
	return p
}
