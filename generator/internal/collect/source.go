package collect

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// typeSource is the syntax of a type of the package block.
type typeSource struct {
	spec    *ast.TypeSpec
	doc     *ast.CommentGroup
	object  *types.TypeName // nil if the name stands for another declaration
	file    *source.File
	fields  []declaration // the methods of an interface, the fields of a struct
	embeds  []*ast.Field  // what an interface or a struct embeds, or what else an interface is declared as
	methods []declaration // that have the type as their receiver
	home    *source.File  // whose output gets the wrapper
}

// declaration is where a method or a field is written, and of which type of this package.
type declaration struct {
	name  *ast.Ident
	node  ast.Node // its signature
	doc   *ast.CommentGroup
	owner *types.TypeName
	file  *source.File

	receiver string // how the declaration of a method calls it, or ""
}

// index finds the syntax of the types of the package block and of their methods.
func (c *collector) index() {
	for _, f := range c.pkg.Files {
		for doc, spec := range source.Types(f.Syntax) {
			c.add(f, doc, spec)
		}
	}
	for _, f := range c.pkg.Files {
		for _, d := range source.Methods(f.Syntax) {
			if s := c.receiverOf(d); s != nil {
				m := declaration{d.Name, d.Type, d.Doc, s.object, f, receiverName(d)}
				s.methods, c.declaredAt[d.Name.Pos()] = append(s.methods, m), m
			}
		}
	}
	for _, s := range c.sources {
		s.home = s.findHome()
	}
}

// add indexes one type.
func (c *collector) add(f *source.File, doc *ast.CommentGroup, spec *ast.TypeSpec) {
	s := &typeSource{spec: spec, doc: doc, file: f}
	if s.object, _ = c.pkg.Info.Defs[spec.Name].(*types.TypeName); s.object != nil {
		c.declared[s.object] = s
	}
	var list []*ast.Field
	switch t := ast.Unparen(spec.Type).(type) {
	case *ast.InterfaceType:
		list = flat(t)
	case *ast.StructType:
		list = t.Fields.List
	default:
		if spec.Assign.IsValid() || s.object != nil && types.IsInterface(s.object.Type()) { // others inherit no methods
			s.embeds = []*ast.Field{{Type: t}}
		}
	}
	for _, field := range list {
		if len(field.Names) == 0 {
			s.embeds = append(s.embeds, field)
		}
		for _, n := range field.Names {
			m := declaration{name: n, node: field, doc: field.Doc, owner: s.object, file: f}
			s.fields, c.declaredAt[n.Pos()] = append(s.fields, m), m
		}
	}
	c.sources = append(c.sources, s)
}

// flat returns what an interface consists of; what it embeds without a name counts as its own.
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

// receiverName is how a method calls its receiver, or "".
func receiverName(d *ast.FuncDecl) string {
	if len(d.Recv.List[0].Names) == 0 || d.Recv.List[0].Names[0].Name == "_" {
		return ""
	}
	return d.Recv.List[0].Names[0].Name
}

// localType returns the type of this package that an expression names, with or without a star or type arguments; nil if it
// names none.
func (c *collector) localType(e ast.Expr) *typeSource { return c.declared[c.pkg.Named(e)] }

// receiverOf returns the type that a method is declared for; nil if it is unknown.
func (c *collector) receiverOf(d *ast.FuncDecl) *typeSource {
	if fn, ok := c.pkg.Info.Defs[d.Name].(*types.Func); ok && fn.Signature().Recv() != nil {
		return c.declared[source.TypeName(fn.Signature().Recv().Type())]
	}
	return nil
}

// findHome chooses the file of the type itself, if a directive stands there, or else the first file with one. The choice must
// not depend on which files are generated for.
func (s *typeSource) findHome() *source.File {
	if carries(s.doc) {
		return s.file
	}
	home := s.file
	for _, d := range slices.Concat(s.fields, s.methods) {
		switch {
		case !carries(d.doc):
		case d.file == s.file:
			return s.file
		case home == s.file:
			home = d.file
		}
	}
	return home
}

// directive is how each directive begins.
const directive = "//ratelimit:"

func carries(cg *ast.CommentGroup) bool { return source.Begins(cg, directive) }
