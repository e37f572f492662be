package bypass

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// isLimited is the fact that a type is annotated, or that a function is the generated constructor of its wrapper. The fact about the
// type names the constructor, because a package may use the type without importing the package of the constructor.
type isLimited struct {
	Constructor string   // qualified with the name of its package
	Methods     []string // the methods with limits
	Ruled       []string // those of them with a rule of their own, and not only one of the type
}

func (*isLimited) AFact()           {}
func (f *isLimited) String() string { return "limits " + strings.Join(f.Methods, ", ") }

// limited is an annotated type with its generated constructor.
type limited struct {
	*isLimited
	annotated *types.TypeName
	wrapper   *types.TypeName // nil if the constructor returns the annotated type itself, or is not known here
}

// covers reports whether a method has limits.
func (l *limited) covers(method string) bool { return slices.Contains(l.Methods, method) }

// limitedBy returns the type that fn wraps. It returns nil unless fn looks like a generated constructor: func(next, *Limiter) wrapper.
func limitedBy(fn *types.Func) *limited {
	params, results := fn.Signature().Params(), fn.Signature().Results()
	if fn.Signature().Recv() != nil || params.Len() != 2 || results.Len() != 1 || !isLimiter(params.At(1).Type()) {
		return nil
	}
	l := &limited{&isLimited{Constructor: fn.Pkg().Name() + "." + fn.Name()}, source.TypeName(params.At(0).Type()), nil}
	if l.annotated == nil {
		return nil
	}
	if result := source.TypeName(results.At(0).Type()); result != l.annotated {
		l.wrapper = result
	}
	return l
}

func isLimiter(t types.Type) bool { return t.String() == "*"+names.Runtime+".Limiter" }

// declareConstructors exports the facts of the generated constructors of this package.
func (c *checker) declareConstructors() {
	ruled := sync.OnceValue(c.ruledMethods)
	for _, f := range c.Files {
		if !source.IsGenerated(f) {
			continue
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				c.declare(f, c.TypesInfo.Defs[d.Name].(*types.Func), ruled)
			}
		}
	}
}

// declare exports the facts of fn, if it is the constructor of a wrapper in f.
func (c *checker) declare(f *ast.File, fn *types.Func, ruled func() map[types.Object]bool) {
	l := limitedBy(fn)
	if l == nil || c.excused(l.annotated.Pos()) {
		return
	}
	for _, d := range source.Methods(f) {
		method := c.TypesInfo.Defs[d.Name].(*types.Func)
		if source.TypeName(method.Signature().Recv().Type()) == l.wrapper && c.usesLimits(d.Body) {
			l.Methods = append(l.Methods, method.Name())
			if declared, _, _ := types.LookupFieldOrMethod(l.annotated.Type(), true, c.Pkg, method.Name()); ruled()[declared] {
				l.Ruled = append(l.Ruled, method.Name())
			}
		}
	}
	c.ExportObjectFact(fn, l.isLimited)
	if l.annotated.Pkg() == c.Pkg { // false if an alias of a type of another package is annotated
		c.ExportObjectFact(l.annotated, l.isLimited)
	}
}

// usesLimits reports whether a method mentions the limits of its wrapper. A method without limits only calls the wrapped value.
func (c *checker) usesLimits(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			t := c.TypesInfo.TypeOf(e)
			found = found || t != nil && t.String() == "*"+names.Wrap+".Limits"
		}
		return !found
	})
	return found
}

// importFacts reads the facts of this package and of the packages that it imports.
func (c *checker) importFacts() {
	facts := c.AllObjectFacts()
	slices.SortFunc(facts, func(a, b analysis.ObjectFact) int { // so that if two packages wrap one type, the same one counts always
		return cmp.Compare(fmt.Sprint(a.Object), fmt.Sprint(b.Object))
	})
	for _, f := range facts {
		switch fact := f.Fact.(type) {
		case *isFactory:
			c.factories[f.Object.(*types.Func)] = true
		case *isWrapped:
			if v, ok := f.Object.(*types.Var); ok {
				c.wrapped = append(c.wrapped, v)
			} else {
				c.wrapping = append(c.wrapping, f.Object.(*types.Func))
			}
		case *isLimited:
			c.importLimited(f.Object, fact)
		}
	}
}

// importLimited reads the fact about an annotated type or about the constructor of its wrapper.
func (c *checker) importLimited(of types.Object, fact *isLimited) {
	fn, ok := of.(*types.Func)
	if !ok { // after all functions, as the sorted texts begin with "func" and "type"
		c.limited[of.(*types.TypeName)] = &limited{isLimited: fact, annotated: of.(*types.TypeName)}
		return
	}
	l := limitedBy(fn)
	l.isLimited = fact
	c.constructors[fn], c.limited[l.annotated] = l, l
	if l.wrapper != nil {
		c.wrappers[l.wrapper] = l.annotated
	}
	c.wrapped = append(c.wrapped, fn.Signature().Params().At(0))
}

// callee returns the function or method that a call names, or nil for other calls.
func (c *checker) callee(call *ast.CallExpr) *types.Func {
	if fn, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func); ok {
		return fn.Origin()
	}
	return nil
}

// name returns the name of a type as this package would usually write it.
func (c *checker) name(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.Pkg {
			return ""
		}
		return p.Name()
	})
}

// nameOf returns the name of a constructor as this package would usually write it.
func (c *checker) nameOf(l *limited) string {
	return strings.TrimPrefix(l.Constructor, c.Pkg.Name()+".")
}
