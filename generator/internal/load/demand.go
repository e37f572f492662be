package load

import (
	"errors"
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// dependencies are the packages that those of the set import, directly or not. They are checked from source, as export
// data would first have to be compiled where the build cache has none. That is quick since it is little: the bodies of functions
// are not parsed, and only what is asked for by name is checked, with what its declaration mentions in turn.
type dependencies struct {
	*loader
	own     map[string]*pkg         // the set's
	sources map[string]*dependency  // the others
	ranks   map[string]int          // of all packages; one that imports another has the greater
	ranked  int                     // how many have one
	pending []*dependency           // with something to be checked
	faults  annotations.Diagnostics // of the type checker itself, in what it has checked last
}

func newDependencies(l *loader) *dependencies {
	d := &dependencies{loader: l, own: map[string]*pkg{}, sources: map[string]*dependency{}, ranks: map[string]int{}}
	for _, p := range l.packages {
		d.own[p.Path] = p
	}
	for _, p := range l.packages {
		d.rank(p.meta)
	}
	return d
}

// source returns the package that p describes; nil if it is in the set or cannot be imported.
func (d *dependencies) source(p *packages.Package) *dependency {
	if p == nil || p.PkgPath == "unsafe" || p.Name == "" || d.own[p.PkgPath] != nil {
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

// ask has a name of s checked, of a type its methods as well, if s has it.
func (d *dependencies) ask(s *dependency, name string) {
	if s == nil {
		return
	}
	s.parse(d.set.Fset)
	if s.asked[name] {
		return
	}
	s.asked[name] = true
	for _, n := range s.named[name] {
		if n.taken {
			continue
		}
		n.taken = true
		n.file.wanted = append(n.file.wanted, n.decl)
		d.pending = append(d.pending, s)
		d.askMentioned(s, n.file, n.decl)
	}
	for _, alias := range s.aliases[name] { // which methods may be declared with
		d.ask(s, alias)
	}
}

// askExported has all exported names of s checked.
func (d *dependencies) askExported(s *dependency) {
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
		case *ast.FuncLit:
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.Field: // its names are no mention of anything
			d.askMentioned(in, f, n.Type)
			return false
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if ok && f.imports[id.Name] != nil {
				d.ask(d.source(f.imports[id.Name]), n.Sel.Name)
				return false
			}
			if ok && id.Name == "C" && in != nil {
				in.cgo = true
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

// rank numbers a package and all that it imports, each behind what that imports.
func (d *dependencies) rank(p *packages.Package) {
	if _, done := d.ranks[p.PkgPath]; done {
		return
	}
	d.ranks[p.PkgPath] = 0 // a cycle ends here
	if own := d.own[p.PkgPath]; own != nil {
		p = own.meta // which may be the one with tests
	}
	for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
		d.rank(p.Imports[path])
	}
	d.ranked++
	d.ranks[p.PkgPath] = d.ranked
}

// settle checks what has been asked for.
func (d *dependencies) settle() {
	d.faults = nil
	if err := d.compileC(); err != nil {
		d.faults.Add(token.NoPos, "%v", err)
		return
	}
	pending := d.pending
	d.pending = nil
	slices.SortFunc(pending, func(a, b *dependency) int { return d.ranks[a.PkgPath] - d.ranks[b.PkgPath] })
	for _, s := range slices.Compact(pending) {
		d.checkPending(s)
	}
}

// noteFault makes an error of a panic of go/types, which broken sources have caused.
func (d *dependencies) noteFault(pos token.Pos) {
	if r := recover(); r != nil {
		d.faults.Add(pos, "Go's own type checker fails at this package; does it compile? (%v)", r)
	}
}

// compileC has the go command translate the packages whose declarations need what C declares. Where that fails, as there is
// no C compiler, types of C stay unknown.
func (d *dependencies) compileC() error {
	var paths []string
	for _, s := range d.sources {
		if s.cgo && s.checker == nil {
			paths = append(paths, s.PkgPath)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	pkgs, err := d.list(metadata|packages.NeedCompiledGoFiles, false, paths)
	if err != nil {
		return err
	}
	for _, p := range pkgs {
		s := d.sources[p.PkgPath]
		if s == nil || len(p.CompiledGoFiles) == 0 {
			continue
		}
		asked := s.asked
		s.Package, s.parsed = p, false
		for name := range asked {
			d.ask(s, name)
		}
	}
	return nil
}

// checkPending checks what of s has been asked for since the last time. Errors show in what is not there.
func (d *dependencies) checkPending(s *dependency) {
	files := s.pending()
	if len(files) == 0 {
		return
	}
	if s.checker == nil {
		s.checker = types.NewChecker(d.config(s.Package, func(error) {}), d.set.Fset, s.types, nil)
	}
	defer d.noteFault(files[0].Name.Pos())
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

// importerOf gives the type checker what a package imports. Along with an error it returns a package about which the type checker does not
// complain further.
type importerOf struct {
	*dependencies
	by *packages.Package
}

func (i importerOf) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	unknown := types.NewPackage(path, guessed(path))
	p := i.by.Imports[path]
	if p == nil {
		return unknown, errors.New("the go command does not know it")
	}
	if own := i.own[p.PkgPath]; own != nil {
		if own.Types == nil {
			return unknown, errors.New("import cycle")
		}
		return own.Types, nil
	}
	if s := i.source(p); s != nil && len(p.GoFiles) > 0 {
		return s.types, nil
	}
	return unknown, errors.New(message(p))
}

// guessed is what a package of this path is probably called: redis for github.com/redis/go-redis/v9, yaml for gopkg.in/yaml.v3.
func guessed(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(names.BaseOf(path), "go-"), ".")
	return strings.TrimSuffix(name, "-go")
}
