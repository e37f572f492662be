package annotations

import (
	"go/ast"
	"go/token"
)

// Stray reports the directives of file, and what looks like some, in the comment groups that are not used: they take effect
// nowhere. fset is the one that file was parsed with.
func Stray(fset *token.FileSet, file *ast.File, used map[*ast.CommentGroup]bool) Errors {
	p := &parser{}
	for _, cg := range file.Comments {
		if used[cg] {
			continue
		}
		why := ""
		for _, c := range cg.List {
			d, _, ok := p.find(c)
			if !ok {
				continue
			}
			if why == "" {
				why = strayReason(fset, file, cg)
			}
			p.add(d.Pos, "%s", why)
		}
	}
	return p.errs
}

// strayReason says why a directive in cg takes effect nowhere, and what to do.
func strayReason(fset *token.FileSet, file *ast.File, cg *ast.CommentGroup) string {
	line := func(p token.Pos) int { return fset.PositionFor(p, false).Line }
	first, last := line(cg.Pos()), line(cg.End())
	behind := false // code on the line of cg
	next := token.Pos(0)
	for p := range edges(file) {
		behind = behind || p < cg.Pos() && line(p) == first
		if p >= cg.End() && (next == 0 || p < next) {
			next = p
		}
	}
	switch {
	case behind:
		return "a directive behind code takes effect nowhere; write it on a line of its own above the type, method or field"
	case carriers(file)[next] && line(next) > last+1:
		return "a blank line detaches this directive from the declaration below, so that it takes effect nowhere; remove the line"
	}
	return "a directive takes effect nowhere here; write it directly above a type, a method or a field"
}

// edges are the first and the last bytes of all that file consists of, but for comments.
func edges(file *ast.File) map[token.Pos]bool {
	found := map[token.Pos]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.CommentGroup:
			return false
		case *ast.File: // which ends with its last comment
			found[n.Pos()] = true
		default:
			found[n.Pos()], found[n.End()-1] = true, true
		}
		return true
	})
	return found
}

// carriers are the first bytes of the declarations above which a directive may stand.
func carriers(file *ast.File) map[token.Pos]bool {
	found := map[token.Pos]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncDecl:
			found[n.Pos()] = n.Recv != nil
		case *ast.TypeSpec:
			found[n.Pos()] = true
		case *ast.GenDecl:
			found[n.Pos()] = n.Tok == token.TYPE
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				found[m.Pos()] = len(m.Names) > 0
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				found[f.Pos()] = len(f.Names) > 0
			}
		}
		return true
	})
	return found
}
