package collect

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// typeSource is the syntax of a package-level type.
type typeSource struct {
	spec    *ast.TypeSpec
	doc     *ast.CommentGroup
	object  *types.TypeName // nil if the name is declared twice
	file    *source.File
	fields  []declaration // the methods of an interface, or the fields of a struct
	embeds  []*ast.Field  // the embedded types; for type A B, with B an interface, and for an alias, the type B
	methods []declaration // the methods with this receiver type
	home    *source.File  // the wrapper goes into the output of this file
}

// declaration is a method or a field of a type of this package.
type declaration struct {
	name  *ast.Ident
	node  ast.Node // the signature or the field
	doc   *ast.CommentGroup
	owner *types.TypeName
	file  *source.File
}

// index finds the syntax of the package-level types and of their methods.
func (c *collector) index() {
	for _, f := range c.pkg.Files {
		for doc, spec := range source.Types(f.Syntax) {
			c.addType(f, doc, spec)
		}
	}
	for _, f := range c.pkg.Files {
		for _, d := range source.Methods(f.Syntax) {
			if s := c.receiverOf(d); s != nil {
				m := declaration{d.Name, d.Type, d.Doc, s.object, f}
				s.methods, c.membersAt[d.Name.Pos()] = append(s.methods, m), m
			}
		}
	}
	for _, s := range c.sources {
		s.home = c.findHome(s)
	}
}

// addType indexes one type.
func (c *collector) addType(f *source.File, doc *ast.CommentGroup, spec *ast.TypeSpec) {
	s := &typeSource{spec: spec, doc: doc, file: f}
	if s.object, _ = c.pkg.Info.Defs[spec.Name].(*types.TypeName); s.object != nil {
		c.sourceOf[s.object] = s
	}
	var list []*ast.Field
	switch t := ast.Unparen(spec.Type).(type) {
	case *ast.InterfaceType:
		list = flat(t)
	case *ast.StructType:
		list = t.Fields.List
	default:
		if spec.Assign.IsValid() || s.object != nil && types.IsInterface(s.object.Type()) { // other types inherit no methods
			s.embeds = []*ast.Field{{Type: t}}
		}
	}
	for _, field := range list {
		if len(field.Names) == 0 {
			s.embeds = append(s.embeds, field)
		}
		for _, n := range field.Names {
			m := declaration{name: n, node: field, doc: field.Doc, owner: s.object, file: f}
			s.fields, c.membersAt[n.Pos()] = append(s.fields, m), m
		}
	}
	c.sources = append(c.sources, s)
}

// flat returns the elements of an interface. The elements of an embedded interface literal count as its own.
func flat(t *ast.InterfaceType) []*ast.Field {
	var all []*ast.Field
	for _, field := range t.Methods.List {
		if inner, ok := ast.Unparen(field.Type).(*ast.InterfaceType); ok {
			all = append(all, flat(inner)...)
		} else {
			all = append(all, field)
		}
	}
	return all
}

// localType returns the type of this package that an expression such as T, *T or T[int] names, or nil.
func (c *collector) localType(e ast.Expr) *typeSource { return c.sourceOf[c.pkg.Named(e)] }

// receiverOf returns the receiver type of a method, or nil if it is not a type of this package.
func (c *collector) receiverOf(d *ast.FuncDecl) *typeSource {
	if fn, ok := c.pkg.Info.Defs[d.Name].(*types.Func); ok && fn.Signature().Recv() != nil {
		return c.sourceOf[source.TypeName(fn.Signature().Recv().Type())]
	}
	return nil
}

// findHome returns the file of the type if it has a directive of the type, or if only files with other build constraints have one, and
// otherwise the first other file that has one. The choice does not depend on the files that are asked for.
func (c *collector) findHome(s *typeSource) *source.File {
	if carries(s.doc) {
		return s.file
	}
	home := s.file
	for _, d := range slices.Concat(s.fields, s.methods) {
		switch {
		case !carries(d.doc):
		case d.file == s.file:
			return s.file
		case home == s.file && !c.isPart(d.file, s.file):
			home = d.file
		}
	}
	return home
}

func carries(cg *ast.CommentGroup) bool { return source.Begins(cg, annotations.Head) }
