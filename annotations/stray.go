package annotations

import (
	"go/ast"
	"go/token"
	"strings"
	"unicode"
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
			d, rest, ok := p.find(c)
			switch {
			case !ok:
			case d.Verb.Value != "bare":
				p.add(d.Pos, "%s has no effect here; write it on a line of its own, directly %s",
					d.Verb.Value, LookUp(d.Verb.Value).On)
			case !isBehindCode(fset, file, c):
				p.add(d.Verb.Pos, "%s", misplacedBare)
			case strings.TrimSpace(rest.Value) == "":
				p.add(d.Verb.Pos, "bare needs a reason, such as //%s:bare the operators' messages do not count", tool)
			}
		}
	}
	return p.errs.Coded("stray")
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
	rest, ok := strings.CutPrefix(c.Text, "//"+tool+":bare")
	if !ok || rest != "" && !unicode.IsSpace(rune(rest[0])) {
		return "", false
	}
	return strings.TrimSpace(rest), true
}
