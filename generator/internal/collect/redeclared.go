package collect

import (
	"go/token"
	"regexp"
	"slices"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// redeclaration is what the type checker says of two methods, or a field and a method, of one name. It leaves one of them out,
// and no type shows that.
var redeclaration = regexp.MustCompile(`^(duplicate method|field and method with the same name|method \S+ already declared|\S+ redeclared)\b`)

// isAmbiguous reports whether a type has two members of one name, and says which.
func (c *collector) isAmbiguous(s *source) bool {
	ours := func(at token.Pos) bool {
		return s.spec.Pos() <= at && at < s.spec.End() || slices.ContainsFunc(s.methods, func(m declaration) bool { return m.name.Pos() == at })
	}
	found := slices.DeleteFunc(slices.Clone(c.pkg.Errors), func(e annotations.Error) bool {
		return e.Pos == s.spec.Name.Pos() || !ours(e.Pos) || !redeclaration.MatchString(e.Msg)
	})
	c.errs = append(c.errs, found...)
	return len(found) > 0
}
