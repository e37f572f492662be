package annotations

import (
	"cmp"
	"go/ast"
	"go/token"
	"math"
	"strings"
	"unicode"
)

// Stray reports the directives of file, and what looks like some, in the comment groups that are not used: they take effect
// nowhere. fset is the one that file was parsed with.
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
			case d.Verb.Value == "bare":
				p.bare(d, rest, placeOf(fset, file, cg))
			default:
				p.add(d.Pos, "%s", placeOf(fset, file, cg).reason(d.Verb.Value))
			}
		}
	}
	return p.errs.Coded("stray")
}

const misplacedBare = "bare stands at the end of a line of code that uses a type without its limits"

// bare checks a directive with that verb, which stands behind code and gives a reason.
func (p *parser) bare(d Directive, reason Text, where place) {
	switch {
	case where != behindCode:
		p.add(d.Verb.Pos, "%s", misplacedBare)
	case strings.TrimSpace(reason.Value) == "":
		p.add(d.Verb.Pos, "bare needs a reason, such as //%s:bare the operators' messages do not count", tool)
	}
}

// Bare returns the reason that a //ratelimit:bare comment gives; ok is false for other comments.
func Bare(c *ast.Comment) (reason string, ok bool) {
	rest, ok := strings.CutPrefix(c.Text, "//"+tool+":bare")
	if !ok || rest != "" && !unicode.IsSpace(rune(rest[0])) {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// place is where a directive stands in vain, as seen from the code, and what to do about it.
type place struct{ where, instead string }

var (
	nowhere        = place{"", "write it directly above a type, a method or a field"}
	behindCode     = place{"behind code", "write it on a line of its own above the type, method or field"}
	insideFunction = place{"inside a function", "write it above a type, a method or a field of the package"}
	aboveVariable  = place{"above a variable", nowhere.instead}
	aboveConstant  = place{"above a constant", nowhere.instead}
	aboveImport    = place{"above an import", nowhere.instead}
	aboveFunction  = place{"above a function", "write it above a method, or above a func type, whose values can be limited"}
	aboveGroup     = place{"above a group of types", "write it above each type in the group that it is for"}
	aboveEmbedded  = place{"above an embedded type", "write it above the type around it, or above the method, spelled out there"}
	aboveCarrier   = place{"above a blank line", "remove the line"} // and below that, what carries directives
)

// reason says why a directive there takes effect nowhere, and what to do.
func (p place) reason(verb string) string {
	switch {
	case p == nowhere:
		return "a directive takes effect nowhere here; " + p.instead
	case p == aboveCarrier:
		return "a blank line detaches this directive from the declaration below, so that it takes effect nowhere; " + p.instead
	case p == aboveEmbedded && verb == "skip":
		return "skip takes effect nowhere here; it stands above a method, or above an embedded type whose rules a wrapper would leave out"
	}
	return "a directive " + p.where + " takes effect nowhere; " + p.instead
}

// placeOf finds where a comment stands: behind code, inside a function, or above what begins next.
func placeOf(fset *token.FileSet, file *ast.File, cg *ast.CommentGroup) place {
	line := func(p token.Pos) int { return fset.PositionFor(p, false).Line }
	first, last := line(cg.Pos()), line(cg.End())
	behind, inside := false, false
	next, above := token.Pos(math.MaxInt), nowhere
	ast.PreorderStack(file, nil, func(n ast.Node, around []ast.Node) bool {
		edges := []token.Pos{n.Pos(), n.End() - 1}
		switch n := n.(type) {
		case *ast.CommentGroup:
			return false
		case *ast.File: // which ends with its last comment
			edges = edges[:1]
		case *ast.BlockStmt:
			inside = inside || n.Pos() < cg.Pos() && cg.Pos() < n.End()
		}
		for _, p := range edges {
			behind = behind || p < cg.Pos() && line(p) == first
			if p >= cg.End() && p < next {
				next, above = p, nowhere
			}
		}
		if n.Pos() == next {
			above = cmp.Or(aboveOf(n, around), above)
		}
		return true
	})
	switch {
	case behind:
		return behindCode
	case inside:
		return insideFunction
	case above == aboveCarrier && line(next) <= last+1:
		return nowhere
	}
	return above
}

// aboveOf is the place above a declaration or a member of a type; zero for other nodes.
func aboveOf(n ast.Node, around []ast.Node) place {
	switch n := n.(type) {
	case *ast.Field:
		switch around[len(around)-2].(type) { // around the list of fields
		case *ast.InterfaceType, *ast.StructType:
			if len(n.Names) == 0 {
				return aboveEmbedded
			}
			return aboveCarrier
		}
	case *ast.FuncDecl:
		if n.Recv == nil {
			return aboveFunction
		}
		return aboveCarrier
	case *ast.TypeSpec:
		return aboveCarrier
	case *ast.GenDecl:
		if n.Tok == token.TYPE && n.Lparen.IsValid() {
			return aboveGroup
		}
		return map[token.Token]place{
			token.TYPE: aboveCarrier, token.VAR: aboveVariable, token.CONST: aboveConstant, token.IMPORT: aboveImport,
		}[n.Tok]
	}
	return place{}
}
