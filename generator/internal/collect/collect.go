// Package collect finds the annotated types of a package and reads their directives. It takes methods from go/types, which knows
// about embedding and instantiation, and only comments and positions from the syntax. It does not look into expressions.
package collect

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Package returns the annotated types of p, with the errors in its directives and warnings about directives without effect.
func Package(fset *token.FileSet, p *source.Package) (*model.Package, annotations.Diagnostics) {
	c := newCollector(fset, p)
	for _, f := range p.Files {
		if f.Syntax.Name.Name == "_" {
			c.found.Add(f.Syntax.Name.Pos(), "a package cannot be called _")
			return &model.Package{Types: p.Types}, c.found
		}
	}
	c.index()
	c.askTogether()
	pkg := &model.Package{
		Types: p.Types, Module: p.Module, ImportedAs: p.ImportedAs,
		Annotated: slices.Compact(slices.Sorted(slices.Values(c.block.annotated))),
		Declared:  c.block.taken(), Imported: slices.Collect(maps.Keys(c.block.imported)),
	}
	others := c.files(false) // first, as their outputs have names, too, and methods of the asked ones hand out their types
	pkg.Files = c.files(true)
	c.handOut(pkg.Files, others)
	c.split(pkg.Files)
	pkg.Elsewhere, pkg.Varies = c.elsewhere(), c.varies(pkg.Files)
	return pkg, c.found.Coded("declaration")
}

func newCollector(fset *token.FileSet, p *source.Package) *collector {
	return &collector{
		fset: fset, pkg: p, sourceOf: map[types.Object]*typeSource{}, membersAt: map[token.Pos]declaration{}, block: newBlock(p),
		fileOf: map[*model.Method]*source.File{}, constraints: map[*source.File]string{},
	}
}

type collector struct {
	fset      *token.FileSet
	pkg       *source.Package
	used      map[*ast.CommentGroup]bool
	sources   []*typeSource                  // all package-level types
	sourceOf  map[types.Object]*typeSource   // the same by object, without types that are declared twice
	membersAt map[token.Pos]declaration      // the methods and fields of all types, by the positions of their names
	fileOf    map[*model.Method]*source.File // the files that declare methods of this package
	block     *block
	names     []string // the names of generated declarations so far

	constraints map[*source.File]string // what the method constraint has returned so far

	found annotations.Diagnostics
}

// group returns the directives in the doc comment of a declaration, and reports what is wrong with them when they are first used.
func (c *collector) group(cg *ast.CommentGroup) annotations.Group {
	g, errs := c.pkg.Directives(cg)
	if !c.used[cg] {
		c.used[cg] = true
		c.found = append(c.found, errs...)
	}
	return g
}

// first returns the position of the first verb in a group that is not empty.
func first(g annotations.Group) token.Pos { return g.All[0].Verb.Pos }

// files collects the files that are asked for, or, if asked is false, the others. It drops the errors that were found before, which are
// those in the others.
func (c *collector) files(asked bool) (all []*model.File) {
	c.used, c.found = map[*ast.CommentGroup]bool{}, nil
	for _, f := range c.pkg.Files {
		if f.Asked == asked {
			all = append(all, c.file(f))
		}
	}
	return all
}

// file collects the types whose wrappers stand in the output of one file.
func (c *collector) file(f *source.File) *model.File {
	out := &model.File{Source: f.Path, Output: source.OutputOf(f.Path), Constraint: c.constraint(f)}
	for _, s := range c.sources {
		if s.home == f {
			if w := c.wrapper(s); w != nil {
				out.Wrappers = append(out.Wrappers, w)
			}
		}
	}
	c.checkMethods(f)
	c.found = append(c.found, annotations.Stray(c.fset, f.Syntax, c.used)...)
	return out
}

// checkMethods reads the directives of the methods in f. It reports those whose wrappers belong to no file, or to one that is not
// asked for.
func (c *collector) checkMethods(f *source.File) {
	for _, d := range source.Methods(f.Syntax) {
		g := c.group(d.Doc)
		if len(g.All) == 0 {
			continue
		}
		switch s := c.receiverOf(d); {
		case s == nil:
			c.found.Add(first(g), "the type of the receiver is not declared in this package")
		case s.home != f && !s.home.Asked:
			c.found.Warn(first(g), "the wrapper of %s is generated from %s", s.spec.Name.Name, filepath.Base(s.home.Path))
		}
	}
}

// annotated reads the directives of all declarations, and returns the first declaration that has one.
func (c *collector) annotated(all []declaration) *declaration {
	var found *declaration
	for i := range all {
		if len(c.group(all[i].doc).All) > 0 && found == nil {
			found = &all[i]
		}
	}
	return found
}
