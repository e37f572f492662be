// Package collect finds the annotated types of a package and what their directives say. Methods come from go/types, so
// that embedding and instantiation are the compiler's; syntax gives comments and positions only. What an expression means is
// not known here.
package collect

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Package returns the annotated types of p. The errors are those of its directives; the warnings tell of what directives
// do not reach.
func Package(fset *token.FileSet, p *load.Package) (pkg *model.Package, errs, warnings annotations.Errors) {
	c := &collector{
		fset: fset, pkg: p, groups: map[*ast.CommentGroup]annotations.Group{}, used: map[*ast.CommentGroup]bool{},
		declared: map[types.Object]*source{}, methods: map[token.Pos]declaration{},
	}
	for _, f := range p.Files {
		if f.Syntax.Name.Name == "_" {
			c.errorf(f.Syntax.Name.Pos(), "a package cannot be called _")
			return &model.Package{Types: p.Types}, c.errs, nil
		}
	}
	c.index()
	pkg = &model.Package{Types: p.Types, Module: p.Module}
	for _, f := range p.Files {
		if f.Annotated {
			pkg.Files = append(pkg.Files, c.file(f))
		}
	}
	if len(c.errs) == 0 { // else these may follow from those
		c.errs = c.idle
	}
	return pkg, c.errs, c.warnings
}

type collector struct {
	fset     *token.FileSet
	pkg      *load.Package
	groups   map[*ast.CommentGroup]annotations.Group // parsed once: embedding leads to a method from several types
	used     map[*ast.CommentGroup]bool
	sources  []*source                 // of all types of the package block
	declared map[types.Object]*source  // the same, but for types that are declared twice
	methods  map[token.Pos]declaration // of all types, by the positions of their names
	names    []string                  // of the wrappers and constructors so far
	errs     annotations.Errors
	idle     annotations.Errors // directives that limit nothing
	warnings annotations.Errors
}

func (c *collector) errorf(pos token.Pos, format string, args ...any) {
	c.errs = append(c.errs, annotations.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

func (c *collector) warnf(pos token.Pos, format string, args ...any) {
	c.warnings = append(c.warnings, annotations.Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
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

// file collects the types whose wrappers stand in the output of one file.
func (c *collector) file(f *load.File) *model.File {
	out := &model.File{Source: f.Path, Output: load.OutputOf(f.Path), Constraint: constraintOf(f)}
	for _, s := range c.sources {
		if s.home == f {
			if w := c.typ(s); w != nil {
				out.Wrappers = append(out.Wrappers, w)
			}
		}
	}
	c.foreign(f)
	c.errs = append(c.errs, annotations.Stray(c.fset, f.Syntax, c.used)...)
	return out
}

// foreign reads the directives of methods in f whose wrappers stand in the output of another file.
func (c *collector) foreign(f *load.File) {
	for d := range load.Methods(f.Syntax) {
		g := c.group(d.Doc)
		if isEmpty(g) {
			continue
		}
		switch s := c.receiverOf(d); {
		case s == nil:
			c.errorf(first(g), "the type of the receiver is not declared in this package")
		case s.home != f && !s.home.Annotated:
			c.warnf(first(g), "the wrapper of %s is generated from %s", s.spec.Name.Name, base(s.home.Path))
		}
	}
}

// typ collects a type declaration; nil if neither it nor a part of it is annotated.
func (c *collector) typ(s *source) *model.Wrapper {
	g := c.group(s.doc)
	onFields, onMethods := c.annotated(s.fields), c.annotated(s.methods)
	if isEmpty(g) && onFields == nil && onMethods == nil {
		return nil
	}
	if s.spec.Name.Name == "_" {
		c.errorf(s.spec.Name.Pos(), "a type without a name cannot be wrapped")
		return nil
	}
	if s.object == nil {
		c.errorf(s.spec.Name.Pos(), "%s is declared twice", s.spec.Name.Name)
		return nil
	}
	for p := range typeParams(s.object.Type()).TypeParams() {
		if p.Obj().Name() == "_" {
			c.errorf(p.Obj().Pos(), "a wrapper of %s needs a name for this type parameter", s.spec.Name.Name)
			return nil
		}
		if !c.valid(p.Constraint(), s.spec) {
			return nil
		}
	}
	under := s.object.Type().Underlying()
	w := &model.Wrapper{Pos: s.spec.Name.Pos(), Object: s.object, Kind: kindOf(s, onFields, onMethods), TypeParams: typeParams(s.object.Type())}
	iface, _ := under.(*types.Interface)
	known := iface == nil || !isUnknown(iface) || c.valid(iface, s.spec) // if not, what is wrong with its methods is told, too
	switch {
	case w.Kind == model.Func && !c.valid(under, s.spec):
		return nil
	case known && iface != nil && !iface.IsMethodSet():
		c.errorf(w.Pos, "%s is a constraint, not a type of values, so that nothing can wrap it", w.Object.Name())
		return nil
	case iface == nil && onFields != nil && onMethods != nil:
		c.errorf(first(c.group(onFields.doc)), "%s has directives on its methods, so that they cannot stand on its fields, too", w.Object.Name())
		return nil
	}
	c.fill(w, s, g)
	return w
}

// annotated returns the first of the declarations that carries a directive, and reads the directives of all.
func (c *collector) annotated(all []declaration) *declaration {
	var found *declaration
	for i := range all {
		if !isEmpty(c.group(all[i].doc)) && found == nil {
			found = &all[i]
		}
	}
	return found
}

// kindOf says what kind of wrapper a type gets. Directives on a struct alone are about its methods, if it has any.
func kindOf(s *source, onFields, onMethods *declaration) model.Kind {
	switch u := s.object.Type().Underlying().(type) {
	case *types.Interface:
		return model.Interface
	case *types.Signature:
		if onMethods == nil {
			return model.Func
		}
	case *types.Struct:
		if onMethods == nil && (onFields != nil || len(exportedMethods(s.object)) == 0 && hasFuncs(u)) {
			return model.Fields
		}
	}
	return model.Concrete
}

// fill completes w, which stands for s and has the directives of g.
func (c *collector) fill(w *model.Wrapper, s *source, g annotations.Group) {
	var wrap annotations.Wrap
	if len(g.Wraps) > 0 {
		wrap = g.Wraps[0]
	}
	w.Scope = scopeOf(c.pkg) + "." + w.Object.Name()
	if wrap.Prefix != "" {
		w.Scope = wrap.Prefix + "." + w.Scope
	}
	for _, d := range g.Skips {
		c.errorf(d.Verb.Pos, "skip stands on a method: the rules of its type do not apply there")
	}
	c.name(w, wrap)
	c.zone(wrap)
	m := &methods{collector: c, source: s, of: w, wrap: wrap}
	if !m.canMean() {
		return
	}
	if w.Kind == model.Func {
		m.function(g)
		m.reportIdle(g)
		return
	}
	for _, d := range g.Fallbacks {
		c.errorf(d.Verb.Pos, "fallback stands on a method: it is called in that one's place")
	}
	w.Rules = c.rules(g.Rules, w.Scope, wrap, true)
	switch w.Kind {
	case model.Interface:
		m.warnOfEmbedded()
		m.ofInterface()
	case model.Concrete:
		m.warnOfEmbedded()
		m.ofConcrete()
	case model.Fields:
		m.ofFields()
	}
	m.reportIdle(g)
}

// scopeOf is the path of a package inside its module, or the name of the module's root package, or of the program it is.
func scopeOf(p *load.Package) string {
	if p.Module == "" {
		return p.Path
	}
	if inside, ok := strings.CutPrefix(p.Path, p.Module+"/"); ok {
		return inside
	}
	if name := p.Types.Name(); name != "main" {
		return name
	}
	return program(p.Module)
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// program is the name of the command that a module is: two of them must not share their counts.
func program(module string) string {
	if parent, last := path.Split(module); parent != "" && majorVersion.MatchString(last) {
		module = path.Clean(parent)
	}
	return path.Base(module)
}

// arguments are type parameters as the arguments of an instance.
func arguments(params *types.TypeParamList) []types.Type {
	var args []types.Type
	for p := range params.TypeParams() {
		args = append(args, p)
	}
	return args
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
