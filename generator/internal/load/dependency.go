package load

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// dependency is an imported package. Only the declarations that were asked for are checked, and those that they mention.
type dependency struct {
	*packages.Package
	types   *types.Package
	checker *types.Checker
	parsed  bool
	files   []*sourceFile
	named   map[string][]*declaration // top-level declarations by name; the name of a type also has its methods and aliases

	compiled bool // a declaration that was asked for mentions C, so that the go command has translated the package
}

// sourceFile is a file of a dependency or of a package of the set.
type sourceFile struct {
	syntax  *ast.File
	imports map[string]*packages.Package // by their names in this file
	dots    []*packages.Package          // dot imports
	header  []ast.Decl                   // the import declarations of a dependency
	wanted  []ast.Decl                   // to be checked next
}

// declaration is a top-level declaration that is checked only if it is asked for.
type declaration struct {
	file  *sourceFile
	decl  ast.Decl
	taken bool // it was asked for
}

// parse parses the files of s once. It ignores errors: what cannot be parsed is missing.
func (s *dependency) parse(fset *token.FileSet) {
	if s.parsed {
		return
	}
	paths := s.GoFiles
	if len(s.CompiledGoFiles) > 0 {
		paths = s.CompiledGoFiles
	}
	s.parsed, s.files, s.named = true, nil, map[string][]*declaration{}
	for _, path := range paths {
		src, _ := os.ReadFile(path)
		syntax, _ := parser.ParseFile(fset, path, withoutBodies(src, false), parser.SkipObjectResolution)
		f := newSourceFile(syntax, s.Package)
		s.files = append(s.files, f)
		for _, d := range syntax.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					f.header = append(f.header, d)
				}
				s.index(f, d)
			case *ast.FuncDecl:
				if d.Recv != nil && !d.Name.IsExported() && s.isRuntime() {
					continue
				}
				d.Body = nil // if it was kept
				s.addDeclaration(&declaration{file: f, decl: d}, cmp.Or(source.Receiver(d), d.Name.Name))
			}
		}
	}
}

// isRuntime reports whether s is the runtime or a package that it consists of. Their unexported fields and methods are left out: half
// of the runtime hangs on them, and nothing in generated code does.
func (s *dependency) isRuntime() bool {
	return strings.HasPrefix(s.PkgPath, names.Runtime) || strings.HasPrefix(s.PkgPath, names.Module+"/internal/")
}

// isHidden reports whether a field has no exported name. An embedded field is not hidden, as it promotes what is exported.
func isHidden(f *ast.Field) bool {
	return len(f.Names) > 0 && !slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
}

// index adds the declarations in d. A group of constants stays together, as a constant may depend on its position in the group.
func (s *dependency) index(f *sourceFile, d *ast.GenDecl) {
	group := &declaration{file: f, decl: d}
	for _, spec := range d.Specs {
		if d.Tok != token.CONST {
			group = &declaration{file: f, decl: &ast.GenDecl{TokPos: d.TokPos, Tok: d.Tok, Specs: []ast.Spec{spec}}}
		}
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if t, ok := spec.Type.(*ast.StructType); ok && s.isRuntime() {
				t.Fields.List = slices.DeleteFunc(t.Fields.List, isHidden)
			}
			s.addDeclaration(group, spec.Name.Name)
			if spec.Assign.IsValid() {
				s.addDeclaration(group, source.NameOf(spec.Type)) // methods of this type may have the alias as their receiver
			}
		case *ast.ValueSpec:
			if d.Tok == token.VAR && spec.Type != nil {
				spec.Values = nil
			}
			for _, name := range spec.Names {
				s.addDeclaration(group, name.Name)
			}
		}
	}
}

func (s *dependency) addDeclaration(d *declaration, name string) {
	if name != "_" && name != "init" {
		s.named[name] = append(s.named[name], d)
	}
}

// newSourceFile returns a file of p with the packages that it imports.
func newSourceFile(syntax *ast.File, p *packages.Package) *sourceFile {
	f, blank := &sourceFile{syntax: syntax, imports: map[string]*packages.Package{}}, map[string]*packages.Package{}
	for _, spec := range syntax.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		imported := p.Imports[path]
		switch {
		case imported == nil:
		case spec.Name == nil:
			f.imports[imported.Name] = imported
		case spec.Name.Name == "_": // directives may use it, unless another one has the name
			blank[imported.Name] = imported
		case spec.Name.Name == ".":
			f.dots = append(f.dots, imported)
		default:
			f.imports[spec.Name.Name] = imported
		}
	}
	for name, imported := range blank {
		if f.imports[name] == nil {
			f.imports[name] = imported
		}
	}
	return f
}

// pending returns files that consist of the imports and the declarations to be checked next.
func (s *dependency) pending() []*ast.File {
	var files []*ast.File
	for _, f := range s.files {
		if len(f.wanted) == 0 {
			continue
		}
		file := *f.syntax
		file.Decls = slices.Concat(f.header, f.wanted)
		f.wanted = nil
		files = append(files, &file)
	}
	return files
}
