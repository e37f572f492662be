package source

import (
	"go/ast"
	"iter"
	"slices"
	"strings"
)

// Types returns the types that a file declares, each with its doc comment.
func Types(f *ast.File) iter.Seq2[*ast.CommentGroup, *ast.TypeSpec] {
	return func(yield func(*ast.CommentGroup, *ast.TypeSpec) bool) {
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range d.Specs {
				s, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := s.Doc
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				if !yield(doc, s) {
					return
				}
			}
		}
	}
}

// Names returns the package-level names that a file declares.
func Names(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	return names
}

// Methods returns the methods that a file declares.
func Methods(f *ast.File) (methods []*ast.FuncDecl) {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
			methods = append(methods, d)
		}
	}
	return methods
}

// Bare returns the name in a type such as *T, (T) or pkg.T[int], without stars, parentheses and type arguments. It returns other
// types, such as []T, as they are.
func Bare(t ast.Expr) ast.Expr {
	switch x := t.(type) {
	case *ast.StarExpr:
		return Bare(x.X)
	case *ast.ParenExpr:
		return Bare(x.X)
	case *ast.IndexExpr:
		return Bare(x.X)
	case *ast.IndexListExpr:
		return Bare(x.X)
	}
	return t
}

// NameOf returns the name in a type such as *T, (T) or T[int]. It returns "" for a type of another package or without a name.
func NameOf(t ast.Expr) string {
	if id, ok := Bare(t).(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// Begins reports whether a comment of the group, which may be nil, begins with words.
func Begins(cg *ast.CommentGroup, words string) bool {
	return cg != nil && slices.ContainsFunc(cg.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, words) })
}

// Receiver returns the name of the receiver type of a method. It returns "" for a function, and if the receiver has no name.
func Receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return NameOf(d.Recv.List[0].Type)
}
