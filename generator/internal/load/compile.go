package load

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// compilation checks what is generated for a package.
type compilation struct {
	*dependencies
	meta *packages.Package
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
		errs = c.compile(p, slices.DeleteFunc(slices.Clone(p.Files), (*source.File).IsTest), others)
	}
	if len(tests) > 0 && len(errs) == 0 {
		errs = c.compile(p, p.Files, outputs)
	}
	return errs
}

// compile type-checks outputs, and the declarations of the other files of p.
func (c *compilation) compile(p *source.Package, others, outputs []*source.File) (errs []types.Error) {
	meta := c.importing(p, outputs)
	conf := c.config(meta, func(err error) {
		e := err.(types.Error)
		in := slices.ContainsFunc(outputs, func(o *source.File) bool { return o.Syntax.FileStart <= e.Pos && e.Pos < o.Syntax.FileEnd })
		if in && !source.IsImportError(e.Msg) { // find has noted that
			e.Msg += tooOld(meta, e.Msg)
			errs = append(errs, e)
		}
	})
	conf.IgnoreFuncBodies = false
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
		c.askUsed(newSourceFile(o.Syntax, meta))
	}
	standIns := slices.DeleteFunc(slices.Clone(p.StandIns), func(name string) bool { return generated[name] })
	files = append(files, c.standIns(meta.Name, standIns))
	c.settle()
	_, _ = conf.Check(meta.PkgPath, c.set.Fset, files, nil)
	return errs
}

// importing returns the package p as it will be with outputs, whose imports it has, too.
func (c *compilation) importing(p *source.Package, outputs []*source.File) *packages.Package {
	meta := *c.meta
	meta.Imports = maps.Clone(meta.Imports)
	var more []string
	for _, o := range outputs {
		for _, spec := range o.Syntax.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); meta.Imports[path] == nil {
				more = append(more, path)
			}
		}
	}
	if missing := c.find(more); missing != nil {
		c.set.Found.Note(p.Files[firstAsked(p)].Syntax.Name.Pos(), "what is generated imports %s and cannot be checked without it: %s",
			missing.PkgPath, message(missing))
	}
	for _, path := range more {
		meta.Imports[path] = c.known[path]
	}
	return &meta
}

// find asks the go command about packages that no package of the set imports yet. It returns the first that is missing, but only the
// first time.
func (c *compilation) find(paths []string) (missing *packages.Package) {
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return c.known[path] != nil })
	if len(paths) == 0 {
		return nil
	}
	pkgs, err := c.list(metadata, false, paths)
	c.know(pkgs)
	for _, path := range paths {
		if c.known[path] == nil {
			c.known[path] = &packages.Package{PkgPath: path, Errors: []packages.Error{{Msg: fmt.Sprint(err)}}}
		}
		if p := c.known[path]; missing == nil && len(p.GoFiles) == 0 {
			missing = p
		}
	}
	return missing
}

// askUsed asks for the names of other packages that a generated file uses.
func (c *compilation) askUsed(f *sourceFile) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if n, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := n.X.(*ast.Ident); ok {
				c.ask(c.source(f.imports[id.Name]), n.Sel.Name)
			}
		}
		return true
	})
}

// tooOld says what to write if an error is about a name that the runtime lacks: the command is newer than what the module requires.
func tooOld(meta *packages.Package, msg string) string {
	p := meta.Imports[names.Runtime]
	isOurs := strings.HasPrefix(msg, "undefined: wrap.") || strings.HasPrefix(msg, "undefined: ratelimit.")
	if !isOurs || p == nil || p.Module == nil || p.Module.Version == "" {
		return ""
	}
	return fmt.Sprintf(", which %s %s lacks; write go get %[1]s@latest", p.Module.Path, p.Module.Version)
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
