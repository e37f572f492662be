package load

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// compilation checks what is generated for a package. If no type of an imported package is in use, the declarations in api stand for it.
type compilation struct {
	*dependencies
	meta    *packages.Package
	fset    *token.FileSet            // of api
	assumed map[string]*types.Package // from api, by path
}

// Compile implements source.Loader. A build without tests lacks what they declare, so other outputs are checked without them.
func (c *compilation) Compile(p *source.Package, outputs []*source.File) (errs []types.Error) {
	var tests, others []*source.File
	for _, o := range outputs {
		if o.IsTest() {
			tests = append(tests, o)
		} else {
			others = append(others, o)
		}
	}
	if len(others) > 0 {
		errs = c.compile(slices.DeleteFunc(slices.Clone(p.Files), (*source.File).IsTest), others, p.StandIns)
	}
	if len(tests) > 0 && len(errs) == 0 {
		errs = c.compile(p.Files, outputs, p.StandIns)
	}
	return errs
}

// compile type-checks outputs, and the declarations of the other files of their package.
func (c *compilation) compile(others, outputs []*source.File, standIns []string) (errs []types.Error) {
	c = &compilation{c.dependencies, c.meta, token.NewFileSet(), map[string]*types.Package{}} // to be freed before the next package
	conf := c.config(c.meta, func(err error) {
		e := err.(types.Error)
		if slices.ContainsFunc(outputs, func(o *source.File) bool { return o.Syntax.FileStart <= e.Pos && e.Pos < o.Syntax.FileEnd }) {
			errs = append(errs, e)
		}
	})
	conf.IgnoreFuncBodies, conf.Importer = false, c
	generated := map[string]bool{}
	var files []*ast.File
	for _, f := range others {
		files = append(files, withoutFunctions(f.Syntax))
	}
	for _, o := range outputs {
		for _, name := range source.Names(o.Syntax) {
			generated[name.Name] = true
		}
		files = append(files, o.Syntax)
	}
	standIns = slices.DeleteFunc(slices.Clone(standIns), func(name string) bool { return generated[name] })
	files = append(files, c.standIns(c.meta.Name, standIns))
	c.needAll(outputs)
	_, _ = conf.Check(c.meta.PkgPath, c.set.Fset, files, nil)
	return errs
}

// withoutFunctions returns a file whose functions have no bodies.
func withoutFunctions(f *ast.File) *ast.File {
	file := *f
	file.Decls = slices.Clone(f.Decls)
	for i, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			bare := *fn
			bare.Body = nil
			file.Decls[i] = &bare
		}
	}
	return &file
}

// inUse returns a dependency if types of it are in use, or else nil.
func (c *compilation) inUse(path string) *dependency {
	if s := c.sources[path]; s != nil && (s.checker != nil || s.Package == nil) {
		return s
	}
	return nil
}

// needAll asks for the names that generated files use. What they use may bring further packages into use, so it asks until there is nothing
// new.
func (c *compilation) needAll(outputs []*source.File) {
	for {
		for _, o := range outputs {
			c.need(o.Syntax)
		}
		if len(c.pending) == 0 {
			return
		}
		c.settle()
	}
}

// need asks for the names that a generated file uses, if their packages are in use.
func (c *compilation) need(f *ast.File) {
	imports := map[string]*dependency{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if s := c.inUse(path); s == nil {
			c.need(c.parsed(path))
		} else if spec.Name != nil {
			imports[spec.Name.Name] = s
		} else {
			imports[s.types.Name()] = s
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := n.X.(*ast.Ident); ok {
				c.ask(imports[id.Name], n.Sel.Name)
			}
		}
		return true
	})
}

// parsed returns the declarations of a package in api.
func (c *compilation) parsed(path string) *ast.File {
	file, _ := parser.ParseFile(c.fset, path, cmp.Or(api[path], "package none"), parser.SkipObjectResolution)
	return file
}

// Import implements types.Importer.
func (c *compilation) Import(path string) (*types.Package, error) {
	switch s := c.inUse(path); {
	case s != nil:
		return s.types, nil
	case c.assumed[path] != nil:
		return c.assumed[path], nil
	case api[path] == "":
		return importerOf{c.dependencies, c.meta}.Import(path)
	}
	conf := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: true}
	p, _ := conf.Check(path, c.fset, []*ast.File{c.parsed(path)}, nil)
	c.assumed[path] = p
	return p, nil
}
