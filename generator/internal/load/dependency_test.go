package load

import "testing"

// TestDependency finds what is imported by way of others, and nothing that is not.
func TestDependency(t *testing.T) {
	dir := module(t, "a.go", "package a\n\nimport \"time\"\n\ntype T = time.Duration\n"+annotated)
	p := first(load(t, dir, "."))
	if got := p.Import("internal/abi"); got == nil || got.Path() != "internal/abi" {
		t.Errorf("internal/abi is %v", got)
	}
	if got := p.Import("net/http"); got != nil {
		t.Errorf("net/http is %v, which nothing imports", got)
	}
}
