package source

import (
	"go/ast"
	"iter"
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

// Names returns the names that a file declares in the block of its package.
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

// Bare returns the name in a type such as *T, (T) or pkg.T[int]. A type that is no name is returned as it is.
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

// NameOf returns the name in a type such as *T, (T) or T[int]; "" if it is of another package or has none.
func NameOf(t ast.Expr) string {
	if id, ok := Bare(t).(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// Begins reports whether a line of a comment, which may be nil, begins with these words.
func Begins(cg *ast.CommentGroup, words string) bool {
	if cg == nil {
		return false
	}
	for _, c := range cg.List {
		if strings.HasPrefix(c.Text, words) {
			return true
		}
	}
	return false
}

// Receiver is the name of the type that a method is declared for; "" if that is unknown, or of a function.
func Receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return NameOf(d.Recv.List[0].Type)
}
