package names

import (
	"fmt"
	"go/types"
	"testing"
)

func TestTake(t *testing.T) {
	s := NewScope("a", "b2")
	for _, step := range []struct {
		hints []string
		want  string
	}{
		{[]string{"x"}, "x"}, {[]string{"x"}, "x2"}, {[]string{"a", "c"}, "c"}, {[]string{"a", "b"}, "b"}, {[]string{"b"}, "b3"},
	} {
		if got := s.Take(step.hints...); got != step.want {
			t.Errorf("Take(%v) = %s, expected %s", step.hints, got, step.want)
		}
	}
}

// TestPlan names packages in the order of their paths, whichever order they came in.
func TestPlan(t *testing.T) {
	packages := []*types.Package{
		types.NewPackage("text/template", "template"), types.NewPackage("html/template", "template"),
		types.NewPackage("example.com/m/v2", "m"), types.NewPackage("example.com/go-yaml", "yaml"),
		types.NewPackage("example.com/taken", "taken"), types.NewPackage("example.com/self", "self"),
		types.NewPackage("odd/string", "string"), types.NewPackage("mine/x", "x"),
	}
	im := NewImports(types.NewPackage("example.com/self", "self"))
	for _, p := range packages {
		im.Add(p)
	}
	im.Avoid("example.com/m/v2", "m", "m2")
	im.Blank("time/tzdata")
	im.Plan(NewScope("taken"))
	std, others := im.Specs("mine")
	const want = `[{ html/template} {string2 odd/string} {template2 text/template} {_ time/tzdata}] ` +
		`[{yaml example.com/go-yaml} {m3 example.com/m/v2} {taken2 example.com/taken} { mine/x}]`
	if got := fmt.Sprint(std, " ", others); got != want {
		t.Errorf("imports are\n%s, expected\n%s", got, want)
	}
}
