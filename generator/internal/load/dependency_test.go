package load

import (
	"go/types"
	"strings"
	"testing"
)

// TestCgoBelow expects the types of C in two imported packages, one of which imports the other.
func TestCgoBelow(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1")
	below := "package c\n\n// typedef int count;\nimport \"C\"\n\ntype T = C.count\n"
	above := strings.Replace(below, "\n\ntype T = C.count", "\nimport below \"example.com/m/c\"\n\ntype T struct {\n\tN C.count\n\tBelow below.T\n}", 1)
	dir := module(t, "c/c.go", below, "d/d.go", strings.Replace(above, "package c", "package d", 1),
		"a.go", "package a\n\nimport \"example.com/m/d\"\n\ntype T = d.T\n"+annotated)
	p := first(load(t, dir, "."))
	fields := p.Types.Imports()[0].Scope().Lookup("T").Type().Underlying().(*types.Struct)
	for f := range fields.Fields() {
		if got := f.Type().Underlying(); got != types.Typ[types.Int32] {
			t.Errorf("%s is %v", f.Name(), got)
		}
	}
}
