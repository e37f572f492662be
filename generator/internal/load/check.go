package load

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// parsePackage parses the files of p and adds it to the set. What was generated before is left out: it may be stale, and
// what is to be generated is not there to be collided with.
func (l *loader) parsePackage(p *packages.Package) annotations.Errors {
	var errs annotations.Errors
	pkg := &Package{Path: p.PkgPath}
	if p.Module != nil {
		pkg.Module, pkg.GoVersion = p.Module.Path, p.Module.GoVersion
	}
	annotated := false
	for _, path := range p.GoFiles {
		src, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, annotations.Error{Msg: wrong(l.cfg.Dir, path, err).Error()})
			continue
		}
		if IsOutput(src) {
			continue
		}
		f := &File{Path: path, Annotated: l.annotated[path]}
		syntax, err := parser.ParseFile(l.set.Fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		f.Syntax = syntax
		if f.Annotated {
			errs = append(errs, syntaxErrors(l.set.Fset, syntax, err)...)
		} else {
			pkg.Errors = append(pkg.Errors, syntaxErrors(l.set.Fset, syntax, err)...)
		}
		annotated = annotated || f.Annotated
		pkg.Files = append(pkg.Files, f)
	}
	pkg.unparsed = len(pkg.Errors)
	if annotated || p.ForTest == "" {
		l.set.Packages = append(l.set.Packages, pkg)
	}
	return errs
}

// syntaxErrors places the parser's errors in fset.
func syntaxErrors(fset *token.FileSet, f *ast.File, err error) annotations.Errors {
	if err == nil {
		return nil
	}
	list, ok := err.(scanner.ErrorList)
	if !ok || f == nil {
		return annotations.Errors{{Msg: err.Error()}}
	}
	var errs annotations.Errors
	for _, e := range list {
		errs = append(errs, annotations.Error{Pos: fset.File(f.FileStart).Pos(e.Pos.Offset), Msg: e.Msg})
	}
	return errs
}

// check type-checks the packages of the set.
func (l *loader) check() error {
	d := newDependencies(l)
	paths := d.imports()
	complete, err := d.findExports(paths)
	if err != nil {
		return err
	}
	if complete {
		d.checkAll()
	}
	if !complete || d.unreadable {
		if err := d.addSources(paths); err != nil {
			return err
		}
		d.checkAll()
	}
	l.set.Packages = slices.DeleteFunc(l.set.Packages, func(p *Package) bool {
		return !slices.ContainsFunc(p.Files, func(f *File) bool { return f.Annotated })
	})
	slices.SortFunc(l.set.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// dependencies gives the type checker the packages that are imported: those of the set from source, others from export data.
// If one has none, since it does not compile, or if it is of another version of Go, all others are checked from source as
// well: the types of the two must not meet.
type dependencies struct {
	*loader
	own        map[string]*Package
	failed     map[string]error  // why a package cannot be imported
	exports    map[string]string // files of export data, by the path of their package
	unreadable bool              // one of them is
	compiled   types.Importer    // reads them
}

func newDependencies(l *loader) *dependencies {
	d := &dependencies{loader: l, own: map[string]*Package{}, failed: map[string]error{}, exports: map[string]string{}}
	for _, p := range l.set.Packages {
		d.own[p.Path] = p
	}
	d.compiled = importer.ForCompiler(l.set.Fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(d.exports[path])
	})
	return d
}

// findExports asks for export data of what the packages import, and reports whether there is all of it.
func (d *dependencies) findExports(paths []string) (complete bool, err error) {
	if len(paths) == 0 {
		return true, nil
	}
	pkgs, err := d.list(packages.NeedName|packages.NeedExportFile, false, paths)
	if err != nil {
		return false, err
	}
	complete = true
	for _, p := range pkgs {
		switch {
		case p.ExportFile != "":
			d.exports[p.PkgPath] = p.ExportFile
		case p.Name == "":
			d.failed[p.PkgPath] = listError(p)
		default:
			complete = false
		}
	}
	return complete, nil
}

// imports are the paths of what is imported and not in the set.
func (d *dependencies) imports() []string {
	var paths []string
	for _, p := range d.set.Packages {
		for _, f := range p.Files {
			for _, spec := range f.Syntax.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err == nil && path != "C" && path != "unsafe" && d.own[path] == nil {
					paths = append(paths, path)
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// addSources makes ready to check packages, and all they import, from source.
func (d *dependencies) addSources(paths []string) error {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule
	pkgs, err := d.list(mode, false, paths)
	if err != nil {
		return err
	}
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		if d.own[p.PkgPath] != nil || p.PkgPath == "unsafe" || d.failed[p.PkgPath] != nil {
			return
		}
		dep := &Package{Path: p.PkgPath}
		if p.Module != nil {
			dep.GoVersion = p.Module.GoVersion
		}
		for _, path := range p.GoFiles {
			if syntax, _ := parser.ParseFile(d.set.Fset, path, nil, parser.SkipObjectResolution); syntax != nil {
				dep.Files = append(dep.Files, &File{Path: path, Syntax: syntax})
			}
		}
		d.own[p.PkgPath] = dep
	})
	return nil
}

// Import implements types.Importer.
func (d *dependencies) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := d.own[path]
	if p == nil {
		p = d.own["vendor/"+path] // the standard library's
	}
	switch {
	case p != nil && p.state == 1:
		return nil, errors.New("import cycle")
	case p != nil:
		d.check(p)
		return p.Types, nil
	case d.failed[path] != nil:
		return nil, d.failed[path]
	}
	pkg, err := d.compiled.Import(path)
	d.unreadable = d.unreadable || err != nil
	return pkg, err
}

// checkAll checks the packages of the set, from the beginning.
func (d *dependencies) checkAll() {
	for _, p := range d.set.Packages {
		p.state, p.Errors = 0, p.Errors[:p.unparsed]
	}
	for _, p := range d.set.Packages {
		d.check(p)
	}
}

// check checks the declarations of p.
func (d *dependencies) check(p *Package) {
	if p.state != 0 {
		return
	}
	p.state = 1
	conf := types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         d,
		Sizes:            types.SizesFor("gc", build.Default.GOARCH),
		Error: func(err error) {
			if e, ok := err.(types.Error); ok {
				p.Errors = append(p.Errors, annotations.Error{Pos: e.Pos, Msg: e.Msg})
			}
		},
	}
	if p.GoVersion != "" {
		conf.GoVersion = "go" + p.GoVersion
	}
	syntax := make([]*ast.File, len(p.Files))
	for i, f := range p.Files {
		syntax[i] = f.Syntax
	}
	p.Types, _ = conf.Check(p.Path, d.set.Fset, syntax, nil)
	p.state = 2
}
