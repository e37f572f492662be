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

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// dependency is a package of which only some declarations are checked: those that have been asked for, and what they mention.
type dependency struct {
	*packages.Package
	types   *types.Package
	checker *types.Checker
	parsed  bool
	files   []*sourceFile
	named   map[string][]*declaration // what is declared at the top level, and of a type its methods and aliases

	compiled bool // what was asked for mentions C
}

// sourceFile is a file of a source.
type sourceFile struct {
	syntax  *ast.File
	imports map[string]*packages.Package // by their names in this file
	dots    []*packages.Package          // imported into the file's scope
	wanted  []ast.Decl                   // yet to be checked
}

// declaration is one that can be left out.
type declaration struct {
	file  *sourceFile
	decl  ast.Decl
	taken bool
}

// parse reads the files of s, once. Their errors show in what is not there.
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
		syntax, _ := parser.ParseFile(fset, path, withoutBodies(src), parser.SkipObjectResolution)
		f := newSourceFile(syntax, s.Package)
		s.files = append(s.files, f)
		for _, d := range syntax.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				s.index(f, d)
			case *ast.FuncDecl:
				s.add(&declaration{file: f, decl: d}, cmp.Or(source.Receiver(d), d.Name.Name))
			}
		}
	}
}

// index notes what d declares. Of constants, one may depend on the place of another: they stay together.
func (s *dependency) index(f *sourceFile, d *ast.GenDecl) {
	group := &declaration{file: f, decl: d}
	for _, spec := range d.Specs {
		if d.Tok != token.CONST {
			group = &declaration{file: f, decl: &ast.GenDecl{TokPos: d.TokPos, Tok: d.Tok, Specs: []ast.Spec{spec}}}
		}
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.add(group, spec.Name.Name)
			if spec.Assign.IsValid() {
				s.add(group, source.NameOf(spec.Type)) // whose methods may have the alias as their receiver
			}
		case *ast.ValueSpec:
			if d.Tok == token.VAR && spec.Type != nil {
				spec.Values = nil
			}
			for _, name := range spec.Names {
				s.add(group, name.Name)
			}
		}
	}
}

func (s *dependency) add(d *declaration, name string) {
	if name != "_" && name != "init" {
		s.named[name] = append(s.named[name], d)
	}
}

// newSourceFile finds what a file of p imports.
func newSourceFile(syntax *ast.File, p *packages.Package) *sourceFile {
	f := &sourceFile{syntax: syntax, imports: map[string]*packages.Package{}}
	for _, spec := range syntax.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		imported := p.Imports[path]
		switch {
		case imported == nil:
		case spec.Name == nil, spec.Name.Name == "_": // which directives may use
			f.imports[imported.Name] = imported
		case spec.Name.Name == ".":
			f.dots = append(f.dots, imported)
		default:
			f.imports[spec.Name.Name] = imported
		}
	}
	return f
}

// pending returns files of what is wanted and not yet checked.
func (s *dependency) pending() []*ast.File {
	var files []*ast.File
	for _, f := range s.files {
		if len(f.wanted) == 0 {
			continue
		}
		file := *f.syntax
		file.Decls = slices.DeleteFunc(slices.Clone(f.syntax.Decls), func(d ast.Decl) bool {
			group, ok := d.(*ast.GenDecl)
			return !ok || group.Tok != token.IMPORT
		})
		file.Decls = append(file.Decls, f.wanted...)
		f.wanted = nil
		files = append(files, &file)
	}
	return files
}
