package generator_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestMissingRuntime generates in a module that does not require the runtime yet, and says so. Without the runtime it finds other
// mistakes in what is generated.
func TestMissingRuntime(t *testing.T) {
	dir := testmodule.Dir(t)
	testmodule.Write(t, filepath.Join(dir, "go.mod"), "module example.com/place\n\ngo 1.26\n")
	testmodule.Write(t, filepath.Join(dir, "x.go"), plain)
	testmodule.Write(t, filepath.Join(dir, "y", "y.go"), plain)
	const runtime = "github.com/ratelimit-go/ratelimit/runtime"
	const note = "x.go:1:9: note: what is generated imports " + runtime + " and cannot be checked without it: " +
		"no required module provides package " + runtime + "; to add it: go get " + runtime
	names, notes := written(t, generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if want := []string{"x_ratelimit.go", "y/y_ratelimit.go"}; !slices.Equal(names, want) || !slices.Equal(notes, []string{note}) {
		t.Errorf("wrote %q, said %q", names, notes)
	}
}

// TestOldRuntime generates in a module whose runtime lacks what this generator calls.
func TestOldRuntime(t *testing.T) {
	dir := testmodule.Dir(t)
	for name, text := range map[string]string{
		"go.mod": "module example.com/place\n\ngo 1.26\n\nrequire github.com/ratelimit-go/ratelimit v0.1.0\n\n" +
			"replace github.com/ratelimit-go/ratelimit => ./old\n",
		"x.go":                     plain,
		"old/go.mod":               "module github.com/ratelimit-go/ratelimit\n\ngo 1.26\n",
		"old/runtime/ratelimit.go": "package ratelimit\n\ntype Limiter struct{}\n",
		"old/runtime/wrap/wrap.go": "package wrap\n",
	} {
		testmodule.Write(t, filepath.Join(dir, name), text)
	}
	_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	const want = "x.go:3:1: what is generated for X.M does not compile: undefined: wrap.NewType, " +
		"which github.com/ratelimit-go/ratelimit v0.1.0 lacks; write go get github.com/ratelimit-go/ratelimit@latest\n"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, expected %s", err, want)
	}
}
