package load

import (
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// dependencies are the packages that the packages of the set import, directly or not. They are type-checked from source, because
// export data would have to be compiled first if the build cache is cold. This is fast because only the declarations that are
// asked for by name are checked, with the declarations that they mention in turn. Function bodies are not even parsed.
type dependencies struct {
	*loader
	sources map[string]*dependency // by path; includes the packages of the set that are checked
	pending []*dependency          // packages with declarations to check
	cgo     []string               // the paths of packages whose cgo files the go command has to translate
}

func newDependencies(l *loader) *dependencies {
	return &dependencies{loader: l, sources: map[string]*dependency{}}
}

// source returns the dependency for p, or nil if p cannot be imported.
func (d *dependencies) source(p *packages.Package) *dependency {
	if p == nil || p.PkgPath == "unsafe" || p.Name == "" {
		return nil
	}
	s := d.sources[p.PkgPath]
	if s == nil {
		s = &dependency{Package: p, types: types.NewPackage(p.PkgPath, p.Name)}
		s.types.MarkComplete()
		d.sources[p.PkgPath] = s
	}
	return s
}

// askFor asks for everything that p may need of its imports: the names that its declarations mention, and all exported names of dot
// imports and of packages that its directives name.
func (d *dependencies) askFor(p *source.Package, meta *packages.Package, needs source.Needs) {
	for _, f := range p.Files {
		file := newSourceFile(f.Syntax, meta)
		d.askMentioned(nil, file, f.Syntax)
		for name, imported := range file.imports {
			if needs.Names(f, name) {
				d.askExported(d.source(imported))
			}
		}
		for _, dot := range file.dots {
			d.askExported(d.source(dot))
		}
	}
}

// ask asks for the declaration of name in s, if there is one. The declaration of a type includes its methods.
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

// askExported asks for all exported names of s.
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

// isUnexported reports whether an element of an interface is an unexported method.
func isUnexported(e *ast.Field) bool { return len(e.Names) > 0 && !e.Names[0].IsExported() }

// askInterfaces asks for all exported types of s that may be interfaces. A wrapper of another package embeds one of them to have methods that
// only s can declare.
func (d *dependencies) askInterfaces(s *dependency) {
	for _, f := range s.files {
		for _, spec := range source.Types(f.syntax) {
			switch ast.Unparen(spec.Type).(type) {
			case *ast.InterfaceType, *ast.Ident:
				if spec.Name.IsExported() {
					d.ask(s, spec.Name.Name)
				}
			}
		}
	}
}

// askMentioned asks for the names that a node mentions outside of function bodies. The node stands in file f of the package in,
// which is nil for a package of the set.
func (d *dependencies) askMentioned(in *dependency, f *sourceFile, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if in != nil && !n.Name.IsExported() {
				d.askInterfaces(in)
			}
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.Field: // its names are declarations
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.InterfaceType:
			if in != nil && slices.ContainsFunc(n.Methods.List, isUnexported) {
				d.askInterfaces(in)
			}
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

// compileC lets the go command translate the packages whose declarations mention C, except where a part of the package is checked
// already. If that fails, for example without a C compiler, the types of C stay unknown.
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

// settle checks all declarations that were asked for.
func (d *dependencies) settle() {
	for len(d.cgo) > 0 {
		d.compileC()
	}
	for _, s := range d.pending {
		d.checkPending(s)
	}
	d.pending = nil
}

// checkPending checks the declarations of s that were asked for since the last time, after those of the packages that s imports.
// It reports no errors: a declaration with an error is missing afterwards.
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

// arch returns the architecture of the build.
func (d *dependencies) arch() string {
	if d.cfg.Build != nil {
		return d.cfg.Build.Arch
	}
	return build.Default.GOARCH
}

func (d *dependencies) config(p *packages.Package, report func(error)) *types.Config {
	conf := &types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importerOf{d, p},
		Sizes:            types.SizesFor("gc", d.arch()),
		Error:            report,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	return conf
}
