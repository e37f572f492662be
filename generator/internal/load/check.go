package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// each parses and checks one package after the other, and yields those with files to generate from. A package comes after the
// packages that it imports.
func (l *loader) each(yield func(*source.Package) bool) {
	d, broken := newDependencies(l), map[string]bool{}
	for meta := range packages.Postorder(l.packages) {
		for _, i := range meta.Imports {
			broken[meta.PkgPath] = broken[meta.PkgPath] || broken[i.PkgPath]
		}
		if !slices.Contains(l.packages, meta) {
			continue
		}
		p, found := l.parse(meta)
		if !found.HasErrors() && !broken[meta.PkgPath] && len(p.Files) > 0 {
			found = append(found, d.check(p, meta)...)
		}
		l.set.Found = append(l.set.Found, found...)
		broken[meta.PkgPath] = broken[meta.PkgPath] || found.HasErrors()
		if !broken[meta.PkgPath] && firstAsked(p) >= 0 && (l.ctx.Err() != nil || !yield(p)) {
			return
		}
	}
}

// parse parses the files of a package, but not generated files: they may be stale, and the new ones would collide with them. A
// syntax error inside a function body is a warning only.
func (l *loader) parse(meta *packages.Package) (*source.Package, annotations.Diagnostics) {
	p := &source.Package{Path: meta.PkgPath}
	if meta.Module != nil {
		p.Module = meta.Module.Path
	}
	var found annotations.Diagnostics
	var outputs []string
	for _, path := range meta.GoFiles {
		src, err := os.ReadFile(path)
		if err != nil {
			found.Add(token.NoPos, "%v", wrong(l.cfg.Dir, annotations.Relative(l.cfg.Dir, path), err))
			continue
		}
		if source.IsOutput(path, src) {
			outputs = append(outputs, filepath.Base(path))
			continue
		}
		syntax, errs := l.parseFile(path, src)
		if len(errs) > 0 {
			if hollow, left := l.parseFile(path, withoutBodies(src, true)); len(left) == 0 { // the declarations have no errors
				found.Warn(errs[0].Pos, "%s", errs[0].Msg) // the other errors may be consequences of the first
				syntax, errs = hollow, nil
			}
		}
		found = append(append(found, errs...), otherPackage(syntax, meta.Name)...)
		p.Files = append(p.Files, &source.File{Path: path, Syntax: syntax, Asked: l.asked[path]})
	}
	l.addOthers(p, meta)
	first := firstAsked(p)
	if len(meta.Errors) == 0 || found.HasErrors() || first < 0 { // the go command reports the errors in found, too
		return p, found
	}
	said := strings.ReplaceAll(listError(meta).Error(), " in "+meta.Dir, "")
	if !slices.ContainsFunc(outputs, func(name string) bool { return strings.Contains(said, name) }) { // not about files to be replaced
		found.Warn(p.Files[first].Syntax.Name.Pos(), "the go command cannot build this package: %s", said)
	}
	return p, found
}

// firstAsked returns the index of the first file to generate from, or -1.
func firstAsked(p *source.Package) int {
	return slices.IndexFunc(p.Files, func(f *source.File) bool { return f.Asked })
}

// otherPackage reports a file whose package clause differs from that of its folder.
func otherPackage(f *ast.File, name string) annotations.Diagnostics {
	if f.Name.Name == "" || f.Name.Name == "_" || name == "" || f.Name.Name == name {
		return nil
	}
	return annotations.Diagnostics{{Pos: f.Name.Pos(), Msg: fmt.Sprintf("found package %s; expected %s, as in other files of this folder", f.Name.Name, name)}}
}

// parseFile parses a file. The syntax is incomplete if there are errors.
func (l *loader) parseFile(path string, src []byte) (*ast.File, annotations.Diagnostics) {
	fset := l.set.Fset
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err == nil {
		return f, nil
	}
	list, _ := err.(scanner.ErrorList)
	var errs annotations.Diagnostics
	for i, e := range list {
		if i > 0 && list[i-1].Pos.Line == e.Pos.Line {
			continue // probably a consequence of the error before
		}
		errs.Add(fset.File(f.FileStart).Pos(e.Pos.Offset), "%s", e.Msg)
	}
	return f, errs
}

// check type-checks the declarations of p, and the imported declarations that they need.
func (d *dependencies) check(p *source.Package, meta *packages.Package) (found annotations.Diagnostics) {
	defer noteFault(&found, p.Files[0].Syntax.Name.Pos())
	needs := d.cfg.Needs(p)
	p.StandIns = needs.StandIns
	d.askFor(p, meta, needs)
	d.settle()
	conf := d.config(meta, func(err error) {
		if e, ok := err.(types.Error); ok {
			p.Errors = withTypeError(p.Errors, e)
		}
	})
	syntax := []*ast.File{d.standIns(meta.Name, p.StandIns)}
	for _, f := range p.Files {
		syntax = append(syntax, f.Syntax)
	}
	p.Info = source.NewInfo()
	p.Types, _ = conf.Check(p.Path, d.set.Fset, syntax, p.Info)
	p.Loader = &compilation{dependencies: d, meta: meta}
	d.sources[p.Path] = &dependency{types: p.Types, parsed: true} // fully checked
	return nil
}

// noteFault turns a panic of go/types into an error. Broken source has caused such panics.
func noteFault(found *annotations.Diagnostics, pos token.Pos) {
	if r := recover(); r != nil {
		found.Add(pos, "Go's own type checker fails at this package; does it compile? (%v)", r)
	}
}

// withTypeError adds an error of the type checker to errs. An error that begins with a tab continues the previous one at another
// position.
func withTypeError(errs annotations.Diagnostics, e types.Error) annotations.Diagnostics {
	part, ok := strings.CutPrefix(e.Msg, "\t")
	if !ok || len(errs) == 0 {
		msg := strings.ReplaceAll(part, "\n\t", "; ")
		folder := filepath.Dir(e.Fset.PositionFor(e.Pos, false).Filename)
		msg = strings.ReplaceAll(msg, folder+string(filepath.Separator), "")
		return append(errs, annotations.Diagnostic{Pos: e.Pos, Msg: msg})
	}
	last := &errs[len(errs)-1]
	last.Msg += fmt.Sprintf("; %s (%s)", part, annotations.Line(e.Fset, e.Pos, last.Pos))
	return errs
}

// addOthers parses the files of a package that are not part of this build.
func (l *loader) addOthers(p *source.Package, meta *packages.Package) {
	dir := filepath.Dir(meta.GoFiles[0])
	entries, _ := os.ReadDir(dir) // files that cannot be read are left out
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(path, ".go") || strings.ContainsRune("_.", rune(e.Name()[0])) || slices.Contains(meta.GoFiles, path) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil || source.IsOutput(path, src) {
			continue
		}
		p.AddOther(l.set.Fset, path, src)
	}
}

// standIns declares types without methods.
func (l *loader) standIns(pkg string, types []string) *ast.File {
	src := strings.Builder{}
	fmt.Fprintf(&src, "package %s\n", pkg)
	for _, name := range types {
		fmt.Fprintf(&src, "type %s struct{}\n", name)
	}
	file, _ := parser.ParseFile(l.set.Fset, "", src.String(), parser.SkipObjectResolution)
	return file
}
