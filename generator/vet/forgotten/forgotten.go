// Package forgotten finds generated wrappers and guards that no program uses, so their types are never limited.
//
// [Find] looks at whole programs: each main package with the packages that it imports, directly or not. A program uses a wrapper if
// its code mentions the wrapper's constructor, whether that code ever runs or not. Tests do not count, nor does the code of a wrapper
// that is not used itself. The types of packages that no main package imports are left out, as their programs may be in other modules.
//
// Package bypass finds values that are not wrapped although the program uses the wrapper elsewhere.
package forgotten

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
)

// Wrapper is a wrapper that no program uses.
type Wrapper struct {
	Package     string         // the path of its package
	At          token.Position // of the name of the annotated type
	Type        string
	Constructor string
}

// String says what is wrong with w.
func (w Wrapper) String() string {
	return fmt.Sprintf("no program calls %s, so %s is never limited; call it where the program creates a value of %[2]s, "+
		"or end this line with //ratelimit:bare and a reason", w.Constructor, w.Type)
}

// Find returns the wrappers of the main module that no program uses. The arguments are flags and packages for go list.
func Find(args []string) ([]Wrapper, error) {
	all, err := list(args)
	if err != nil {
		return nil, err
	}
	p := &programs{all: all, fset: token.NewFileSet(), wrappers: map[object]*wrapper{}, mentions: map[*wrapper][]*wrapper{}}
	packages := ofPrograms(all)
	for _, pkg := range packages {
		if pkg.declares() {
			p.parse(pkg)
			p.declare(pkg)
		}
	}
	for _, pkg := range packages {
		if slices.ContainsFunc(pkg.Imports, func(path string) bool { return all[path].declares() }) {
			p.parse(pkg)
		}
		for _, f := range pkg.files {
			p.note(pkg, f)
		}
	}
	p.use(nil)
	return p.unused(), nil
}

// programs is what Find knows of all programs together.
type programs struct {
	all      map[string]*listed // packages by path
	fset     *token.FileSet
	wrappers map[object]*wrapper     // by constructor, and by the type of the wrapper
	mentions map[*wrapper][]*wrapper // by the wrapper whose code mentions them; those that other code mentions are at nil
}

// object is a name that a package declares.
type object struct{ pkg, name string }

// wrapper is a generated wrapper, or a function that is generated for a func type or a struct of funcs.
type wrapper struct {
	constructor object
	annotated   *ast.Ident // where its type is declared
	bare        bool       // on purpose
	used        bool
}

// parse parses the files of a package.
func (p *programs) parse(pkg *listed) {
	if pkg.files != nil {
		return
	}
	for _, name := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
		if f, _ := parser.ParseFile(p.fset, filepath.Join(pkg.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution); f != nil {
			pkg.files = append(pkg.files, f)
		}
	}
}

// use marks the wrappers that the code of a wrapper mentions. For nil, that is the code of programs.
func (p *programs) use(of *wrapper) {
	for _, w := range p.mentions[of] {
		if !w.used {
			w.used = true
			p.use(w)
		}
	}
}

func (p *programs) unused() (found []Wrapper) {
	for o, w := range p.wrappers {
		if o == w.constructor && !w.used && !w.bare {
			found = append(found, Wrapper{o.pkg, p.fset.PositionFor(w.annotated.Pos(), false), w.annotated.Name, o.name})
		}
	}
	return found
}
