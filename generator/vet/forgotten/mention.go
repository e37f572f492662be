package forgotten

import (
	"cmp"
	"go/ast"
	"strconv"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// declare adds the wrappers that the generated files of a package declare, and the guards of its types.
func (p *programs) declare(pkg *listed) {
	types, excused := map[string]*ast.Ident{}, source.Excused(p.fset, pkg.files)
	for _, f := range pkg.files {
		for doc, spec := range source.Types(f) {
			types[spec.Name.Name] = spec.Name
			if source.Begins(doc, annotations.Head+"guard") {
				g, _ := annotations.Parse(doc)
				constructor := object{pkg.ImportPath, source.NamesFor(spec.Name.Name, g).New}
				p.wrappers[constructor] = &wrapper{constructor, spec.Name, excused(spec.Name.Pos()), false}
			}
		}
	}
	for _, f := range pkg.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !source.IsGenerated(f) || !isConstructor(fn) {
				continue
			}
			annotated := types[source.NameOf(fn.Type.Params.List[0].Type)]
			if annotated == nil {
				continue
			}
			w := &wrapper{object{pkg.ImportPath, fn.Name.Name}, annotated, excused(annotated.Pos()), false}
			p.wrappers[w.constructor] = w
			if result := source.NameOf(fn.Type.Results.List[0].Type); result != annotated.Name {
				p.wrappers[object{pkg.ImportPath, result}] = w
			}
		}
	}
}

// isConstructor reports whether a function of a generated file is a constructor: func(next, *Limiter) wrapper.
func isConstructor(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && fn.Type.Params.NumFields() == 2 && fn.Type.Results.NumFields() == 1
}

// note records the wrappers that the code of a file mentions. In generated files only the code of wrappers matters, which may create
// other wrappers without their constructors.
func (p *programs) note(pkg *listed, f *ast.File) {
	generated, imported := source.IsGenerated(f), p.imports(pkg, f)
	for _, d := range f.Decls {
		var of *wrapper
		if fn, ok := d.(*ast.FuncDecl); ok && generated {
			of = p.wrappers[object{pkg.ImportPath, cmp.Or(source.Receiver(fn), fn.Name.Name)}]
		}
		if generated && of == nil {
			continue
		}
		for o := range imported.mentioned(d) {
			if w := p.wrappers[o]; w != nil && (generated || o == w.constructor) {
				p.mentions[of] = append(p.mentions[of], w)
			}
		}
	}
}

// imports are the packages whose names a file can mention.
type imports struct {
	named map[string]string // the paths by the names in the file
	local []string          // the paths of the package itself, and of packages that are imported as "."
}

// imports returns the imports of a file.
func (p *programs) imports(pkg *listed, f *ast.File) imports {
	im := imports{named: map[string]string{}, local: []string{pkg.ImportPath}}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		imported := p.all[path]
		switch {
		case err != nil || imported == nil:
		case spec.Name == nil:
			im.named[imported.Name] = path
		case spec.Name.Name == ".":
			im.local = append(im.local, path)
		default:
			im.named[spec.Name.Name] = path
		}
	}
	return im
}

// mentioned returns the objects that a declaration mentions. A variable with the name of an object counts as the object.
func (im imports) mentioned(d ast.Decl) map[object]bool {
	found := map[object]bool{}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				found[object{im.named[x.Name], n.Sel.Name}] = true
			}
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			for _, path := range im.local {
				found[object{path, n.Name}] = true
			}
		}
		return true
	}
	ast.Inspect(d, visit)
	return found
}
