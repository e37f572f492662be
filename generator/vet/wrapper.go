package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// isWrapper is the fact that a type is a generated wrapper.
type isWrapper struct {
	New     string   // the name of its constructor
	Methods []string // those that a limit covers
}

func (*isWrapper) AFact() {}
func (w *isWrapper) String() string {
	return fmt.Sprintf("%s(%s)", w.New, strings.Join(w.Methods, ", "))
}

// declareWrappers exports the facts of the wrappers in f, a generated file.
func (c *checker) declareWrappers(f *ast.File) {
	found := map[types.Object]*isWrapper{}
	for _, d := range f.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Recv != nil {
			continue
		}
		fn, _ := c.TypesInfo.Defs[d.Name].(*types.Func)
		if w := wrapperOf(fn); w != nil {
			found[w] = &isWrapper{New: fn.Name()}
		}
	}
	for d := range load.Methods(f) {
		method, _ := c.TypesInfo.Defs[d.Name].(*types.Func)
		if w := found[receiver(method)]; w != nil && c.usesLimiter(d.Body) {
			w.Methods = append(w.Methods, d.Name.Name)
		}
	}
	for object, w := range found {
		c.ExportObjectFact(object, w)
	}
}

// usesLimiter reports whether a method does more than to pass its call on.
func (c *checker) usesLimiter(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if e, ok := n.(*ast.SelectorExpr); ok {
			found = found || isLimiter(c.TypesInfo.TypeOf(e))
		}
		return !found
	})
	return found
}

func isLimiter(t types.Type) bool {
	return t != nil && t.String() == "*"+names.Runtime+".Limiter"
}

func isRuntime(p *types.Package) bool { return p.Path() == names.Runtime }

// wrapperOf returns the type that fn makes, if fn is shaped as the constructor of a wrapper: func(next, *Limiter) *Wrapper.
func wrapperOf(fn *types.Func) *types.TypeName {
	if fn == nil || fn.Signature().Params().Len() != 2 || fn.Signature().Results().Len() != 1 {
		return nil
	}
	if !isLimiter(fn.Signature().Params().At(1).Type()) {
		return nil
	}
	p, ok := fn.Signature().Results().At(0).Type().(*types.Pointer)
	if !ok {
		return nil
	}
	return typeName(p)
}

// limits are those of a wrapped interface, as they can be missed.
type limits struct {
	Path, Package string   // of the interface and its wrapper
	Interface     string   // its name
	New           string   // the constructor of the wrapper
	Methods       []string // those that a limit covers
}

func (l limits) same(o limits) bool { return l.Path == o.Path && l.New == o.New }
func (l limits) isOf(o *types.TypeName) bool {
	return o != nil && o.Pkg() != nil && l.Path == o.Pkg().Path() && l.Interface == o.Name()
}

// anyIsOf reports whether all has the limits of an interface.
func anyIsOf(all []limits, iface *types.TypeName) bool {
	return slices.ContainsFunc(all, func(l limits) bool { return l.isOf(iface) })
}

// spell returns the name of the interface or of the constructor as this package has it.
func (c *checker) spell(l *limits, name string) string {
	if l.Path == c.Pkg.Path() {
		return name
	}
	return l.Package + "." + name
}

// qualify names packages as their importers mostly do.
func (c *checker) qualify(p *types.Package) string {
	if p == c.Pkg {
		return ""
	}
	return p.Name()
}

// wrapper is a generated wrapper that this package can name.
type wrapper struct {
	limits
	of        *types.Named // the interface
	construct *types.Func
}

// wrapperBy returns the wrapper that construct, which may be nil, makes.
func (c *checker) wrapperBy(construct *types.Func) *wrapper {
	var fact isWrapper
	object := wrapperOf(construct)
	if object == nil || !c.ImportObjectFact(object, &fact) || fact.New != construct.Name() {
		return nil
	}
	next, ok := types.Unalias(construct.Signature().Params().At(0).Type()).(*types.Named)
	if !ok {
		return nil
	}
	pkg := construct.Pkg()
	return &wrapper{limits{pkg.Path(), pkg.Name(), next.Obj().Name(), fact.New, fact.Methods}, next.Origin(), construct}
}

// wrappers returns those of this package and of what it imports.
func (c *checker) wrappers() []*wrapper {
	var found []*wrapper
	for _, pkg := range append([]*types.Package{c.Pkg}, c.Pkg.Imports()...) {
		for _, fact := range c.AllObjectFacts() {
			if w, ok := fact.Fact.(*isWrapper); ok && fact.Object.Pkg() == pkg {
				construct, _ := pkg.Scope().Lookup(w.New).(*types.Func)
				if w := c.wrapperBy(construct); w != nil {
					found = append(found, w)
				}
			}
		}
	}
	return found
}

// typeName returns the declaration of the named type that t is or points to; nil if it is none.
func typeName(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// receiver returns the type that a method is declared on; nil for a function.
func receiver(fn *types.Func) *types.TypeName {
	if fn == nil || fn.Signature().Recv() == nil {
		return nil
	}
	return typeName(fn.Signature().Recv().Type())
}
