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
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// parse parses the files of p. What was generated before is left out: it may be stale, and what is to be generated is not there
// to be collided with.
func (l *loader) parse(p *pkg) (errs annotations.Diagnostics) {
	if p.meta.Module != nil {
		p.Module = p.meta.Module.Path
	}
	var outputs []string
	for _, path := range p.meta.GoFiles {
		src, err := os.ReadFile(path)
		if err != nil {
			errs.Add(token.NoPos, "%v", wrong(l.cfg.Dir, annotations.Relative(l.cfg.Dir, path), err))
			continue
		}
		if source.IsOutput(path, src) {
			outputs = append(outputs, filepath.Base(path))
			continue
		}
		syntax, found := l.parseFile(path, src)
		if len(found) > 0 {
			if hollow, errs := l.parseFile(path, withoutBodies(src)); len(errs) == 0 { // all that it declares is known
				p.warnings.Warn(found[0].Pos, "%s", found[0].Msg) // the others may follow from it
				syntax, found = hollow, nil
			}
		}
		errs = append(append(errs, found...), otherPackage(syntax, p.meta.Name)...)
		p.Files = append(p.Files, &source.File{Path: path, Syntax: syntax, Annotated: l.annotated[path], Asked: l.asked[path]})
	}
	if !p.annotated() { // another one imports it, perhaps
		return nil
	}
	if len(errs) == 0 { // else they are the same
		p.noteError(outputs)
	}
	l.addStandIns(p, p.meta.Name)
	l.addOthers(p)
	return errs
}

// noteError makes a warning of what the go command has against an annotated package, other than outputs: those will change.
func (p *pkg) noteError(outputs []string) {
	if len(p.meta.Errors) == 0 {
		return
	}
	first := p.Files[slices.IndexFunc(p.Files, func(f *source.File) bool { return f.Annotated })]
	said := strings.ReplaceAll(listError(p.meta).Error(), " in "+p.meta.Dir, "")
	if !slices.ContainsFunc(outputs, func(name string) bool { return strings.Contains(said, name) }) {
		p.warnings.Warn(first.Syntax.Name.Pos(), "the go command cannot build this package: %s", said)
	}
}

// otherPackage reports a file that says it is of another package than its folder has.
func otherPackage(f *ast.File, name string) annotations.Diagnostics {
	if f == nil || f.Name.Name == "" || f.Name.Name == "_" || name == "" || f.Name.Name == name {
		return nil
	}
	return annotations.Diagnostics{{Pos: f.Name.Pos(), Msg: fmt.Sprintf("found package %s; expected %s, as in other files of this folder", f.Name.Name, name)}}
}

// parseFile parses a file, as far as that is possible.
func (l *loader) parseFile(path string, src []byte) (*ast.File, annotations.Diagnostics) {
	fset := l.set.Fset
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err == nil {
		return f, nil
	}
	list, ok := err.(scanner.ErrorList)
	if !ok || f == nil {
		return f, annotations.Diagnostics{{Msg: err.Error()}}
	}
	var errs annotations.Diagnostics
	for i, e := range list {
		if i > 0 && list[i-1].Pos.Line == e.Pos.Line {
			continue // which most probably follows from that
		}
		errs.Add(fset.File(f.FileStart).Pos(e.Pos.Offset), "%s", e.Msg)
	}
	return f, errs
}

// each parses and checks the packages of the set, and forgets the syntax of each behind the next stages.
func (l *loader) each(yield func(*source.Package) bool) {
	d, broken := newDependencies(l), map[string]bool{}
	slices.SortFunc(l.packages, func(a, b *pkg) int { return d.ranks[a.Path] - d.ranks[b.Path] })
	for _, p := range l.packages {
		errs := l.parse(p)
		l.set.Found = append(l.set.Found, errs...)
		if len(errs) > 0 || len(broken) > 0 && imports(p.meta, broken) {
			broken[p.Path] = true
			continue
		}
		d.askFor(p)
		d.settle()
		d.check(p)
		if l.set.Found = append(l.set.Found, d.faults...); !p.asked() || len(d.faults) > 0 {
			continue
		}
		l.set.Found = append(l.set.Found, p.warnings...)
		if l.ctx.Err() != nil || !yield(p.Package) {
			return
		}
		p.Package, p.standIns = &source.Package{Path: p.Path, Types: p.Types}, nil
	}
}

// imports reports whether p imports one of the packages of these paths, directly or not.
func imports(p *packages.Package, paths map[string]bool) bool {
	found := false
	packages.Visit([]*packages.Package{p}, func(i *packages.Package) bool {
		found = found || paths[i.PkgPath]
		return !found
	}, nil)
	return found
}

func (p *pkg) annotated() bool {
	return slices.ContainsFunc(p.Files, func(f *source.File) bool { return f.Annotated })
}

func (p *pkg) asked() bool {
	return slices.ContainsFunc(p.Files, func(f *source.File) bool { return f.Asked })
}

// qualified is a name of another package in a directive.
var qualified = regexp.MustCompile(`([\pL_][\pL_\p{Nd}]*)\.([\pL_][\pL_\p{Nd}]*)`)

// askFor asks for all that p needs of what it imports: what its declarations mention; what its directives do; and what
// expressions have without a mention, which is the time.
func (d *dependencies) askFor(p *pkg) {
	for _, f := range p.Files {
		file := newSourceFile(f.Syntax, p.meta)
		d.askMentioned(nil, file, f.Syntax)
		if f.Annotated {
			d.askDirectives(file)
		}
	}
	if !p.annotated() {
		return
	}
	for _, i := range p.meta.Imports {
		d.source(i) // one of them may import time
	}
	d.ask(d.sources["time"], "Time")
}

func (d *dependencies) askDirectives(f *sourceFile) {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, "//ratelimit:") {
				continue
			}
			for _, m := range qualified.FindAllStringSubmatch(c.Text, -1) {
				s := d.source(f.imports[m[1]])
				if d.ask(s, m[2]); s != nil && s.named[m[2]] == nil {
					d.askExported(s) // to suggest another
				}
			}
		}
	}
}

// check checks the declarations of p.
func (d *dependencies) check(p *pkg) {
	conf := d.config(p.meta, func(err error) {
		if e, ok := err.(types.Error); ok {
			p.Errors = withTypeError(p.Errors, e)
		}
	})
	syntax := make([]*ast.File, len(p.Files))
	for i, f := range p.Files {
		syntax[i] = f.Syntax
	}
	if p.standIns != nil {
		syntax = append(syntax, p.standIns)
	}
	if len(syntax) > 0 {
		defer d.noteFault(syntax[0].Name.Pos())
	}
	p.Types, _ = conf.Check(p.Path, d.set.Fset, syntax, nil)
	p.Importer = allOf{d, p}
	d.noteImports(p)
}

// withTypeError adds an error of the type checker. What goes on with a tab is a part of the error before: it has another place.
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
