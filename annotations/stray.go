package annotations

import (
	"go/ast"
	"go/token"
	"strings"
)

// Stray reports directives, and comments that look like directives, in the comment groups of file that are not in used. They
// have no effect. The file must have been parsed with fset.
func Stray(fset *token.FileSet, file *ast.File, used map[*ast.CommentGroup]bool) Diagnostics {
	p := &parser{}
	for _, cg := range file.Comments {
		if used[cg] {
			continue
		}
		for _, c := range cg.List {
			d, rest, ok := p.directive(c)
			switch {
			case !ok:
			case d.Verb.Value != "bare":
				p.errorf(d.Pos, "%s has no effect %s", d.Verb.Value, whyStray(fset, file, cg, d.Verb.Value))
			case !isBehindCode(fset, file, c):
				p.errorf(d.Verb.Pos, "%s", misplacedBare)
			case strings.TrimSpace(rest.Value) == "":
				p.errorf(d.Verb.Pos, "bare needs a reason, such as //%s:bare the operators' messages do not count", tool)
			}
		}
	}
	return p.errs.Coded("stray")
}

// whyStray returns the end of a message about a directive in a comment group that has no effect: where it is, and where it goes.
func whyStray(fset *token.FileSet, file *ast.File, cg *ast.CommentGroup, verb string) string {
	line := func(pos token.Pos) int { return fset.PositionFor(pos, false).Line }
	around := nodeAround(file, cg)
	below := nodeBelow(around, cg.End())
	f, isFunc := below.(*ast.FuncDecl)
	group, isGroup := below.(*ast.GenDecl)
	switch body, _ := around.(*ast.FuncDecl); {
	case isBehindCode(fset, file, cg.List[0]):
		return "at the end of a line; write it on a line of its own, above what it is about"
	case body != nil && body.Body != nil && body.Body.Lbrace < cg.Pos():
		return "inside a function; it goes above a type of the package, or above a method"
	case below == nil || cg.Pos() < file.Package:
	case isFunc && f.Recv == nil:
		return "above a function; it goes " + LookUp(verb).On
	case isGroup && group.Tok == token.TYPE && group.Lparen.IsValid():
		return "above a group of types; it goes inside the group, above the name of a type"
	case line(below.Pos()) > line(cg.End())+1:
		return "before an empty line; write it directly above what it is about"
	}
	return "here; write it on a line of its own, directly " + LookUp(verb).On
}

// nodeAround returns the declaration that a comment is in, or the file.
func nodeAround(file *ast.File, cg *ast.CommentGroup) ast.Node {
	for _, d := range file.Decls {
		if d.Pos() < cg.Pos() && cg.Pos() < d.End() {
			return d
		}
	}
	return file
}

// nodeBelow returns the first declaration, type or field after a position that is inside around, or nil.
func nodeBelow(around ast.Node, pos token.Pos) (below ast.Node) {
	ast.Inspect(around, func(n ast.Node) bool {
		switch n.(type) {
		case ast.Decl, *ast.TypeSpec, *ast.Field:
			if n.Pos() > pos && (below == nil || n.Pos() < below.Pos()) {
				below = n
			}
		}
		return true
	})
	return below
}

const misplacedBare = "bare goes at the end of a line of code that uses or declares a type without its limits"

// isBehindCode reports whether code stands before the comment c on the same line.
func isBehindCode(fset *token.FileSet, file *ast.File, c *ast.Comment) bool {
	begin := fset.File(c.Slash).LineStart(fset.PositionFor(c.Slash, false).Line)
	behind := false
	ast.Inspect(file, func(n ast.Node) bool {
		if _, isComment := n.(*ast.CommentGroup); n == nil || isComment {
			return false
		}
		behind = behind || begin <= n.Pos() && n.Pos() < c.Slash || begin < n.End() && n.End() <= c.Slash
		return !behind
	})
	return behind
}

// Bare returns the reason that a //ratelimit:bare comment gives; ok is false for other comments.
func Bare(c *ast.Comment) (reason string, ok bool) {
	if !strings.HasPrefix(c.Text, Head) { // directive would look for near misses in every comment
		return "", false
	}
	d, rest, ok := (&parser{}).directive(c)
	return strings.TrimSpace(rest.Value), ok && d.Verb.Value == "bare"
}
