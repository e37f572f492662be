package load

import (
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// dependencies are the packages that those of the set import, directly or not. They are checked from source: with a cold build
// cache, export data would have to be compiled first. This is quick because it checks little: function bodies are not parsed, and
// only declarations that somebody asks for by name are checked, with the declarations that these mention in turn.
type dependencies struct {
	*loader
	sources map[string]*dependency // also those of the set that are checked
	pending []*dependency          // with something to be checked
	cgo     []string               // the paths of those to be translated by the go command
}

func newDependencies(l *loader) *dependencies {
	return &dependencies{loader: l, sources: map[string]*dependency{}}
}

// source returns the package that p describes; nil if it cannot be imported.
func (d *dependencies) source(p *packages.Package) *dependency {
	if p == nil || p.PkgPath == "unsafe" || p.Name == "" {
		return nil
	}
	s := d.sources[p.PkgPath]
	if s == nil {
		s = &dependency{Package: p, types: types.NewPackage(p.PkgPath, p.Name)}
		s.types.MarkComplete()
		d.sources[p.PkgPath] = s
		var imports []*types.Package
		for _, i := range p.Imports {
			if below := d.source(i); below != nil {
				imports = append(imports, below.types)
			}
		}
		s.types.SetImports(imports)
	}
	return s
}

// askFor asks for everything that p needs of its imports: what its declarations mention, what its directives may mention, and what
// dot imports bring. It also asks for time.Time, which expressions have without naming it.
func (d *dependencies) askFor(p *source.Package, meta *packages.Package) {
	for _, f := range p.Files {
		file := newSourceFile(f.Syntax, meta)
		d.askMentioned(nil, file, f.Syntax)
		d.askDirectives(file)
		for _, dot := range file.dots {
			d.askExported(d.source(dot))
		}
	}
	for _, i := range meta.Imports {
		d.source(i) // one of them may import time
	}
	d.ask(d.sources["time"], "Time")
}

// askDirectives asks for the packages whose names stand in directives.
func (d *dependencies) askDirectives(f *sourceFile) {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, "//ratelimit:") {
				continue
			}
			for name, p := range f.imports {
				if strings.Contains(c.Text, name+".") {
					d.askExported(d.source(p))
				}
			}
		}
	}
}

// ask has a name of s checked, of a type its methods as well, if s has it.
func (d *dependencies) ask(s *dependency, name string) {
	if s == nil {
		return
	}
	s.parse(d.set.Fset)
	for _, n := range s.named[name] {
		if n.taken {
			continue
		}
		n.taken = true
		n.file.wanted = append(n.file.wanted, n.decl)
		d.pending = append(d.pending, s)
		d.askMentioned(s, n.file, n.decl)
	}
}

// askExported has all exported names of s checked.
func (d *dependencies) askExported(s *dependency) {
	if s == nil {
		return
	}
	s.parse(d.set.Fset)
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if token.IsExported(name) {
			d.ask(s, name)
		}
	}
}

// askMentioned asks for what a node mentions, except in the bodies of functions. The node is in a file of the package in, or, if
// that is nil, of one in the set.
func (d *dependencies) askMentioned(in *dependency, f *sourceFile, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.Field: // its names are no mention of anything
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.BlockStmt, *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if ok && f.imports[id.Name] != nil {
				d.ask(d.source(f.imports[id.Name]), n.Sel.Name)
				return false
			}
			if ok && id.Name == "C" && in != nil && !in.compiled && in.checker == nil {
				in.compiled = true
				d.cgo = append(d.cgo, in.PkgPath)
			}
			d.askMentioned(in, f, n.X)
			return false
		case *ast.Ident:
			d.ask(in, n.Name)
			for _, p := range f.dots {
				d.ask(d.source(p), n.Name)
			}
		}
		return true
	})
}

// compileC has the go command translate the packages whose declarations mention C, unless a part of the package is checked already.
// If that fails, for example without a C compiler, the types of C stay unknown.
func (d *dependencies) compileC() {
	pkgs, _ := d.list(metadata|packages.NeedCompiledGoFiles, false, d.cgo)
	d.cgo = nil
	for _, p := range pkgs {
		s := d.sources[p.PkgPath]
		before := s.named
		s.Package, s.parsed = p, false
		for name, all := range before {
			if slices.ContainsFunc(all, func(n *declaration) bool { return n.taken }) {
				d.ask(s, name)
			}
		}
	}
}

// settle checks what has been asked for.
func (d *dependencies) settle() {
	for len(d.cgo) > 0 {
		d.compileC()
	}
	for _, s := range d.pending {
		d.checkPending(s)
	}
	d.pending = nil
}

// checkPending checks the declarations of s that were asked for since the last time. The packages that s imports come first. A
// declaration with an error is missing afterwards; nothing else tells of it.
func (d *dependencies) checkPending(s *dependency) {
	files := s.pending()
	if len(files) == 0 {
		return
	}
	for _, i := range s.Imports {
		if below := d.source(i); below != nil {
			d.checkPending(below)
		}
	}
	if s.checker == nil {
		s.checker = types.NewChecker(d.config(s.Package, func(error) {}), d.set.Fset, s.types, nil)
	}
	_ = s.checker.Files(files)
}

func (d *dependencies) config(p *packages.Package, report func(error)) *types.Config {
	conf := &types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importerOf{d, p},
		Sizes:            types.SizesFor("gc", build.Default.GOARCH),
		Error:            report,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	return conf
}
