// Package collect finds the annotated interfaces of a package and what their directives say. Methods come from go/types, so
// that embedding and instantiation are the compiler's; syntax gives comments and positions only. What an expression means is
// not known here.
package collect

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Package returns the annotated interfaces of p. The errors are those of its directives; the warnings tell of what directives
// do not reach.
func Package(fset *token.FileSet, p *load.Package) (pkg *model.Package, errs, warnings annotations.Errors) {
	c := &collector{
		fset: fset, pkg: p, groups: map[*ast.CommentGroup]annotations.Group{},
		used: map[*ast.CommentGroup]bool{}, specs: map[types.Object]*ast.TypeSpec{},
	}
	c.indexSpecs()
	pkg = &model.Package{Types: p.Types, Module: p.Module}
	for _, f := range p.Files {
		if f.Annotated {
			pkg.Files = append(pkg.Files, c.file(f))
		}
	}
	return pkg, c.errs, c.warnings
}

type collector struct {
	fset     *token.FileSet
	pkg      *load.Package
	groups   map[*ast.CommentGroup]annotations.Group // parsed once: embedding leads to a method from several types
	used     map[*ast.CommentGroup]bool
	specs    map[types.Object]*ast.TypeSpec
	names    []string // of the wrappers and constructors so far
	errs     annotations.Errors
	warnings annotations.Errors
}

func (c *collector) errorf(pos token.Pos, format string, args ...any) {
	c.errs = append(c.errs, annotations.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// group parses the directives of a comment that a declaration carries.
func (c *collector) group(cg *ast.CommentGroup) annotations.Group {
	if cg == nil {
		return annotations.Group{}
	}
	g, ok := c.groups[cg]
	if !ok {
		var errs annotations.Errors
		g, errs = annotations.Parse(cg)
		c.groups[cg], c.used[cg] = g, true
		c.errs = append(c.errs, errs...)
		c.refuse(g)
	}
	return g
}

// isEmpty reports whether a group has no directive at all.
func isEmpty(g annotations.Group) bool {
	return len(g.Rules)+len(g.Wraps)+len(g.Skips)+len(g.Fallbacks) == 0
}

// first is the position of a verb in a group that is not empty.
func first(g annotations.Group) token.Pos {
	switch {
	case len(g.Wraps) > 0:
		return g.Wraps[0].Verb.Pos
	case len(g.Rules) > 0:
		return g.Rules[0].Verb.Pos
	case len(g.Skips) > 0:
		return g.Skips[0].Verb.Pos
	}
	return g.Fallbacks[0].Verb.Pos
}

// indexSpecs finds the syntax of the types of the package block.
func (c *collector) indexSpecs() {
	for _, f := range c.pkg.Files {
		for _, d := range f.Syntax.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, s := range d.Specs {
					s := s.(*ast.TypeSpec)
					if o := c.pkg.Types.Scope().Lookup(s.Name.Name); o != nil && o.Pos() == s.Name.Pos() {
						c.specs[o] = s
					}
				}
			}
		}
	}
}

// file collects what stands in one file.
func (c *collector) file(f *load.File) *model.File {
	out := &model.File{Source: f.Path, Output: load.OutputOf(f.Path), Constraint: constraintOf(f)}
	for _, d := range f.Syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				c.unsupported(d.Doc, "a method of a struct")
			}
		case *ast.GenDecl:
			if d.Tok != token.TYPE {
				continue
			}
			for _, s := range d.Specs {
				s := s.(*ast.TypeSpec)
				doc := s.Doc
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				if w := c.typ(s, doc); w != nil {
					out.Wrappers = append(out.Wrappers, w)
				}
			}
		}
	}
	c.errs = append(c.errs, annotations.Stray(c.fset, f.Syntax, c.used)...)
	return out
}

// unsupported refuses directives in a place where they will be understood one day.
func (c *collector) unsupported(doc *ast.CommentGroup, what string) {
	if g := c.group(doc); !isEmpty(g) {
		c.errorf(first(g), "a directive on %s is not supported yet; annotate an interface", what)
	}
}

// typ collects a type declaration; nil if it is not annotated.
func (c *collector) typ(spec *ast.TypeSpec, doc *ast.CommentGroup) *model.Wrapper {
	switch t := spec.Type.(type) {
	case *ast.InterfaceType:
		return c.annotated(spec, doc, t.Methods.List)
	case *ast.StructType:
		c.unsupported(doc, "a struct")
		for _, f := range t.Fields.List {
			c.unsupported(f.Doc, "a field of a struct")
		}
		return nil
	case *ast.FuncType:
		c.unsupported(doc, "a func type")
		return nil
	}
	return c.annotated(spec, doc, nil)
}

// annotated collects the type if it or one of its methods carries a directive.
func (c *collector) annotated(spec *ast.TypeSpec, doc *ast.CommentGroup, fields []*ast.Field) *model.Wrapper {
	g := c.group(doc)
	found := !isEmpty(g)
	for _, f := range fields {
		if len(f.Names) > 0 && !isEmpty(c.group(f.Doc)) {
			found = true
		}
	}
	if !found {
		return nil
	}
	object, _ := c.pkg.Types.Scope().Lookup(spec.Name.Name).(*types.TypeName)
	if object == nil || object.Pos() != spec.Name.Pos() {
		c.errorf(spec.Name.Pos(), "%s is declared twice", spec.Name.Name)
		return nil
	}
	iface, ok := object.Type().Underlying().(*types.Interface)
	switch {
	case !c.valid(object.Type().Underlying(), spec):
		return nil
	case !ok:
		c.errorf(spec.Name.Pos(), "%s is no interface: directives on types of this kind are not supported yet", object.Name())
		return nil
	case !iface.IsMethodSet():
		c.errorf(spec.Name.Pos(), "%s is a constraint, not a type of values, so that nothing can wrap it", object.Name())
		return nil
	}
	return c.wrapper(spec, object, iface, g)
}

// wrapper makes the model of an annotated interface.
func (c *collector) wrapper(spec *ast.TypeSpec, object *types.TypeName, iface *types.Interface, g annotations.Group) *model.Wrapper {
	w := &model.Wrapper{Pos: spec.Name.Pos(), Object: object, Interface: iface, TypeParams: typeParams(object.Type())}
	var wrap annotations.Wrap
	if len(g.Wraps) > 0 {
		wrap = g.Wraps[0]
	}
	w.Scope = scopeOf(c.pkg) + "." + object.Name()
	if wrap.Prefix != "" {
		w.Scope = wrap.Prefix + "." + w.Scope
	}
	for _, s := range g.Skips {
		c.errorf(s.Verb.Pos, "skip stands on a method: the rules of its type do not apply there")
	}
	c.name(w, wrap)
	w.Rules = c.rules(g.Rules, w.Scope, wrap, true)
	c.methods(w, spec, wrap)
	return w
}

// name names the wrapper and its constructor.
func (c *collector) name(w *model.Wrapper, wrap annotations.Wrap) {
	pos, name := w.Pos, w.Object.Name()
	w.Name = "Limited" + upper(name)
	if !token.IsExported(name) {
		w.Name = "limited" + upper(name)
	}
	if wrap.Name != "" {
		arg, _ := wrap.Arg("name")
		pos, w.Name = arg.Value.Pos, wrap.Name
	}
	w.New = "new" + upper(w.Name)
	if token.IsExported(w.Name) {
		w.New = "New" + w.Name
	}
	for _, n := range []string{w.Name, w.New} {
		taken := c.pkg.Types.Scope().Lookup(n)
		for _, other := range c.names {
			if n == other {
				c.errorf(pos, "two wrappers would declare %s; name one of them with //ratelimit:wrap name=", n)
			}
		}
		if taken != nil {
			at := c.fset.Position(taken.Pos())
			c.errorf(pos, "the generated %s would collide with the one of line %d of %s; choose another with //ratelimit:wrap name=",
				n, at.Line, base(at.Filename))
		}
		c.names = append(c.names, n)
	}
}

func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// scopeOf is the path of a package inside its module, or the name of the module's root package.
func scopeOf(p *load.Package) string {
	if p.Module == "" {
		return p.Path
	}
	if inside, ok := strings.CutPrefix(p.Path, p.Module+"/"); ok {
		return inside
	}
	return p.Types.Name()
}

func typeParams(t types.Type) *types.TypeParamList {
	switch t := t.(type) {
	case *types.Named:
		return t.TypeParams()
	case *types.Alias:
		return t.TypeParams()
	}
	return nil
}
