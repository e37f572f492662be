// Package source defines the parsed and type-checked packages that package load makes and package collect reads. It also has
// functions about the syntax of declarations, and about the names of generated files and types.
package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// Package is a package with annotated files. Its function bodies are parsed, but not type-checked.
type Package struct {
	Path   string
	Module string // the path of its module, "" without one
	Types  *types.Package
	Files  []*File
	Others []*File                 // files of the package that are not part of this build
	Errors annotations.Diagnostics // of the type checker

	Loader   Loader      // nil for a package of Checked
	Info     *types.Info // from NewInfo, or with more maps
	StandIns []string    // the empty types that stand for wrappers to be generated

	directives map[*ast.CommentGroup]parsed // by Directives
}

// Needs is what the type checker has to know beside the declarations of a package, because of its directives.
type Needs struct {
	StandIns []string // empty types that stand for wrappers to be generated
	// Names reports whether a directive in a file may mention the package that is imported under a name.
	Names func(f *File, pkg string) bool
}

// Loader checks what is generated for one package.
type Loader interface {
	// Compile type-checks files that were generated for p, with their function bodies. It returns the errors in these files.
	Compile(p *Package, outputs []*File) []types.Error
}

// NewInfo returns the maps that the type checker has to fill for a package.
func NewInfo() *types.Info {
	return &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}}
}

// parsed is what a comment says, and what is wrong with it.
type parsed struct {
	group annotations.Group
	errs  annotations.Diagnostics
}

// Directives returns the directives of a doc comment, which may be nil. It parses each comment only once.
func (p *Package) Directives(cg *ast.CommentGroup) (annotations.Group, annotations.Diagnostics) {
	found, ok := p.directives[cg]
	if !ok {
		if p.directives == nil {
			p.directives = map[*ast.CommentGroup]parsed{}
		}
		found.group, found.errs = annotations.Parse(cg)
		p.directives[cg] = found
	}
	return found.group, found.errs
}

// Lacks returns the paths of the files of other builds that declare names which are undefined in this build.
func (p *Package) Lacks() (paths []string) {
	for _, f := range p.Others {
		declares := func(e annotations.Diagnostic) bool {
			name, ok := strings.CutPrefix(e.Msg, "undefined: ")
			return ok && slices.ContainsFunc(Names(f.Syntax), func(id *ast.Ident) bool { return id.Name == name })
		}
		if slices.ContainsFunc(p.Errors, declares) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// File is a parsed file.
type File struct {
	Path   string
	Syntax *ast.File
	Asked  bool // generate from it; it has a directive or a comment that looks like one
}

// IsTest reports whether f is a test file.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Named returns the object of the name in an expression such as T, *T or pkg.T[int] in p, or nil.
func (p *Package) Named(e ast.Expr) types.Object {
	switch e := Bare(e).(type) {
	case *ast.Ident:
		return p.Info.Uses[e]
	case *ast.SelectorExpr:
		return p.Info.Uses[e.Sel]
	}
	return nil
}

// TypeName returns the name of the named type that t is or points to, or nil.
func TypeName(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// ImportedAs returns the package that the file at position in imports under name, or else the packages of this name that it imports as _. The
// name "." means dot imports.
func (p *Package) ImportedAs(in token.Pos, name string) (found []*types.Package) {
	var blank []*types.Package
	for _, f := range p.Files {
		for _, spec := range f.Syntax.Imports {
			as := p.Info.PkgNameOf(spec)
			if in < f.Syntax.FileStart || in >= f.Syntax.FileEnd || as == nil {
				continue
			}
			switch imported := as.Imported(); {
			case as.Name() == name:
				found = append(found, imported)
			case as.Name() == "_" && imported.Name() == name && !slices.Contains(blank, imported):
				blank = append(blank, imported)
			}
		}
	}
	if len(found) == 0 {
		return blank
	}
	return found
}

// Unimported returns the errors about packages that could not be imported.
func (p *Package) Unimported() annotations.Diagnostics {
	return slices.DeleteFunc(slices.Clone(p.Errors), func(e annotations.Diagnostic) bool {
		return !IsImportError(e.Msg)
	})
}

// IsImportError reports whether a message of the type checker is about a package that cannot be imported.
func IsImportError(msg string) bool { return strings.HasPrefix(msg, "could not import ") }

// NoteFault turns a panic, which is a bug of the generator, into an error. It must be deferred.
func (p *Package) NoteFault(found *annotations.Diagnostics) {
	fault := recover()
	if fault == nil {
		return
	}
	at := token.NoPos
	if len(p.Files) > 0 {
		at = p.Files[0].Syntax.Package
	}
	*found = append(*found, annotations.Diagnostic{Pos: at, Code: "internal", Msg: FaultText(fault)})
}

// FaultText returns the message about a panic that was just recovered.
func FaultText(fault any) string { return fmt.Sprintf("internal error: %v\n%s", fault, debug.Stack()) }

// Checked returns a package that another program has parsed and checked without errors. It has all files but generated ones, and
// all of them are asked for.
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

// AddOther adds a file that is not part of this build, if it is of the package. Generated names must not collide with its names either.
func (p *Package) AddOther(fset *token.FileSet, path string, src []byte) {
	syntax, _ := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if syntax != nil && len(p.Files) > 0 && syntax.Name.Name == p.Files[0].Syntax.Name.Name {
		p.Others = append(p.Others, &File{Path: path, Syntax: syntax})
	}
}

// ImportedNames returns the names that an import declares in a file of Files or Others: the name of the package, or all exported
// names of a dot import.
func (p *Package) ImportedNames(spec *ast.ImportSpec) []string {
	path, _ := strconv.Unquote(spec.Path.Value)
	var imported *types.Package
	for _, i := range p.Types.Imports() {
		if i.Path() == path {
			imported = i
		}
	}
	switch {
	case spec.Name != nil && spec.Name.Name != ".":
		return []string{spec.Name.Name}
	case imported == nil && spec.Name == nil:
		return []string{names.BaseOf(path)} // only another build imports the package, so its name is guessed
	case imported == nil:
		return nil
	case spec.Name == nil:
		return []string{imported.Name()}
	}
	return slices.DeleteFunc(imported.Scope().Names(), func(name string) bool { return !token.IsExported(name) })
}
