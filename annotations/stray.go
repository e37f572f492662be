package annotations

import (
	"go/ast"
	"go/token"
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
		var where place
		for _, c := range cg.List {
			d, rest, ok := p.find(c)
			if !ok {
				continue
			}
			if where == "" {
				where = placeOf(fset, file, cg)
			}
			if d.Verb.Value == "bare" {
				p.bare(d, rest, where)
			} else {
				p.add(d.Pos, "%s", where.reason(d.Verb.Value))
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

// place is where a directive stands, as seen from the code.
type place string

const (
	nowhere        place = "here"
	behindCode     place = "behind code"
	insideFunction place = "inside a function"
	detached       place = "above a blank line"
	aboveCarrier   place = "above what carries directives"
	aboveFunction  place = "above a function"
	aboveGroup     place = "above a group of types"
	aboveEmbedded  place = "above an embedded type"
)

// reason says why a directive there takes effect nowhere, and what to do.
func (w place) reason(verb string) string {
	instead := "write it directly above a type, a method or a field"
	switch w {
	case detached:
		return "a blank line detaches this directive from the declaration below, so that it takes effect nowhere; remove the line"
	case nowhere, aboveCarrier:
		return "a directive takes effect nowhere here; " + instead
	case behindCode:
		instead = "write it on a line of its own above the type, method or field"
	case insideFunction:
		instead = "write it above a type, a method or a field of the package"
	case aboveFunction:
		instead = "write it above a method, or above a func type, whose values can be limited"
	case aboveGroup:
		instead = "write it above each type in the group that it is for"
	case aboveEmbedded:
		instead = "write it above the type around it, or above the method, spelled out there"
		if verb == "skip" {
			return "skip takes effect nowhere here; it stands above a method, or above an embedded type whose rules a wrapper would leave out"
		}
	}
	return "a directive " + string(w) + " takes effect nowhere; " + instead
}

func placeOf(fset *token.FileSet, file *ast.File, cg *ast.CommentGroup) place {
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
	above, known := places(file)[next]
	switch {
	case behind:
		return behindCode
	case above == aboveCarrier && line(next) > last+1:
		return detached
	case isInsideFunction(file, cg.Pos()):
		return insideFunction
	case known:
		return above
	}
	return nowhere
}

func isInsideFunction(file *ast.File, at token.Pos) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		body, ok := n.(*ast.BlockStmt)
		found = found || ok && body.Pos() < at && at < body.End()
		return !ok
	})
	return found
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

// places tells what is above the first bytes of the declarations.
func places(file *ast.File) map[token.Pos]place {
	found := map[token.Pos]place{}
	fields := func(list []*ast.Field) {
		for _, f := range list {
			if found[f.Pos()] = aboveCarrier; len(f.Names) == 0 {
				found[f.Pos()] = aboveEmbedded
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncDecl:
			if found[n.Pos()] = aboveCarrier; n.Recv == nil {
				found[n.Pos()] = aboveFunction
			}
		case *ast.TypeSpec:
			found[n.Pos()] = aboveCarrier
		case *ast.GenDecl:
			switch {
			case n.Tok != token.TYPE:
				found[n.Pos()] = place("above " + map[token.Token]string{token.VAR: "a variable", token.CONST: "a constant", token.IMPORT: "an import"}[n.Tok])
			case n.Lparen.IsValid():
				found[n.Pos()] = aboveGroup
			default:
				found[n.Pos()] = aboveCarrier
			}
		case *ast.InterfaceType:
			fields(n.Methods.List)
		case *ast.StructType:
			fields(n.Fields.List)
		}
		return true
	})
	return found
}
