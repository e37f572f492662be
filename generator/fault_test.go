package generator_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// requireError generates from a method with comment above it, and fails the test if there is no error.
func requireError(t *testing.T, comment, want string) {
	t.Helper()
	dir := filepath.Join(newModule(t, "example.com/fault"), "x")
	src := "package x\n\n//ratelimit:rule limit=1 per=1m\ntype A interface {\n\t" + comment + "\n\tM(phone string) error\n}\n"
	testmodule.Write(t, filepath.Join(dir, "x.go"), src)
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	if err == nil || !strings.HasPrefix(err.Error(), "x.go:5:") || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %q in line 5", comment, err, want)
	}
	if len(result.Files) > 0 {
		t.Errorf("%s: generated all the same", comment)
	}
}

func TestFault_MisspeltAttributeIsIgnored(t *testing.T) {
	t.Parallel()
	requireError(t, `//ratelimit:rule limt=1 per=1m`, `"limt"`)
	requireError(t, `//ratelimit:rule limit=1 per=1m Key="{phone}"`, `"Key"`)
	requireError(t, `//ratelimit:rule limit=1 per=1m key="{fone}"`, `fone`)
	requireError(t, `//ratelimit:rule limit=1 per=1 minute`, `per`)
	requireError(t, `//ratelimit:rule limit=1 per=1m on-error=alow`, `alow`)
}

func TestFault_MisspeltFallbackIsIgnored(t *testing.T) {
	t.Parallel()
	requireError(t, `//ratelimit:falback busy`, `falback`)
	requireError(t, `//ratelimit:fallback buzy`, `buzy`)
	requireError(t, `// ratelimit:fallback busy`, `//ratelimit:fallback`)
}

func TestFault_MisspeltSkipMarkerIsIgnored(t *testing.T) {
	t.Parallel()
	requireError(t, `//ratelimit:skipp`, `skipp`)
	requireError(t, `// ratelimit:skip`, `//ratelimit:skip`)
	requireError(t, `//rateLimit:skip`, `//ratelimit:skip`)
	requireError(t, `//ratelimit: skip`, `//ratelimit:skip`)
}
