package vet

import (
	"fmt"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/check"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/compile"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// directives reports what the generator would refuse.
func (c *checker) directives() {
	pkg, errs, _ := collect.Package(c.Fset, load.Checked(c.Fset, c.Pkg, c.Files))
	errs = append(errs, compile.Package(pkg)...)
	wrong, _ := check.Packages(c.Fset, []*model.Package{pkg})
	c.reportAll(append(errs, wrong...))
}

// reportAll reports errors, each once.
func (c *checker) reportAll(errs annotations.Errors) {
	seen := map[string]bool{}
	for _, e := range errs {
		at := fmt.Sprint(e.Pos, e.Msg)
		if seen[at] {
			continue
		}
		seen[at] = true
		d := analysis.Diagnostic{Pos: e.Pos, Category: "directive", Message: e.Msg}
		if fix := e.Fix; fix != nil {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "write " + fix.Text,
				TextEdits: []analysis.TextEdit{{Pos: fix.Pos, End: fix.End, NewText: []byte(fix.Text)}},
			}}
		}
		c.Report(d)
	}
}
