package directive

import (
	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// unheld returns a diagnostic for each rule that counts calls that run, above a method whose result goes on after the method has returned,
// such as a stream, unless a result holds the permit, or the line of the method is excused.
func unheld(pass *analysis.Pass, pkg *model.Package) (found annotations.Diagnostics) {
	excused := source.Excused(pass.Fset, pass.Files)
	for _, m := range pkg.Methods() {
		if excused[source.LineOf(pass.Fset, m.Pos)] {
			continue
		}
		for _, r := range m.Rules {
			if !r.Declared.Releases() || !r.Hold.IsZero() || r.OfType {
				continue
			}
			for _, result := range m.Results {
				if collect.Holds(result) != nil {
					found.Add(r.Verb.Pos, "the permit comes back when %s returns, while %s goes on; write hold=%[2]s, "+
						"or end the line of %[1]s with //ratelimit:bare and a reason", m.Name, result.Name)
					break
				}
			}
		}
	}
	return found.Coded("rule")
}
