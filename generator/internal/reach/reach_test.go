package reach_test

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// TestImportable expects the rule of the go command: packages below the parent of the last folder named internal may import it.
func TestImportable(t *testing.T) {
	for _, c := range []struct {
		path, from string
		want       bool
	}{
		{"a/b", "c", true},
		{"a/internal/b", "a", true},
		{"a/internal/b", "a_test", true},
		{"a/internal/b", "a/c/d", true},
		{"a/internal/b", "ab", false},
		{"a/internal/b/internal/c", "a", false},
		{"a/internal/b/internal/c", "a/internal/b/d", true},
		{"internal/abi", "a", false},
		{"vendor/golang.org/x/net", "a", false},
		{"a/internals", "b", true},
	} {
		if got := reach.Importable(c.path, c.from); got != c.want {
			t.Errorf("%s from %s: %v", c.path, c.from, got)
		}
	}
}
