package generator_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestMissingModule imports a package whose module is not available, for several reasons. The package has another name than its path.
func TestMissingModule(t *testing.T) {
	t.Parallel()
	const source = "package x\n\nimport \"github.com/redis/go-redis/v9\"\n\n//ratelimit:rule limit=1 per=1m\ntype X interface{ M(*redis.Client) error }\n"
	for name, c := range map[string]struct {
		empty string // a file
		edit  string // of the go.mod file
		want  string // the end of the reason
	}{
		"no go.sum": {
			empty: "go.sum",
			want:  "missing go.sum entry for module providing package github.com/redis/go-redis/v9 (imported by example.com/place); to add: go get example.com/place",
		},
		"broken replacement": {
			edit: "-replace=github.com/redis/go-redis/v9=./nowhere",
			want: ": replacement directory ./nowhere does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t, "-- x.go --\n"+source)
			if c.empty != "" {
				testmodule.Write(t, filepath.Join(dir, c.empty), "")
			}
			if c.edit != "" {
				goIn(t, dir, "mod", "edit", c.edit)
			}
			_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
			const begin = "x.go:3:8: could not import github.com/redis/go-redis/v9 ("
			if err == nil || !strings.HasPrefix(err.Error(), begin) || !strings.HasSuffix(err.Error(), c.want+")") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, expected %s…%s)", err, begin, c.want)
			}
		})
	}
}
