package generator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestErrors generates from testdata/errors/*.go. There, the expected errors of a line stand below it, in comments with a ^ at the
// column, or with the number of the column: //3: message.
func TestErrors(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../testdata/errors/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	root := newModule(t, "example.com/errors")
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, name)
			testmodule.Write(t, filepath.Join(dir, "x.go"), src)
			_, err = generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
			var found []string
			if err != nil {
				found = strings.Split(err.Error(), "\n")
			}
			compare(t, marked(string(src)), found)
		})
	}
}

var mark = regexp.MustCompile(`^\s*// *(\^|[0-9]+:) (.*)$`)

// marked returns the errors that src expects.
func marked(src string) []string {
	var expected []string
	at := 0
	for i, line := range strings.Split(src, "\n") {
		m := mark.FindStringSubmatchIndex(line)
		if m == nil {
			at = i + 1
			continue
		}
		column := fmt.Sprint(m[2] + 1)
		if where := line[m[2]:m[3]]; where != "^" {
			column = strings.TrimSuffix(where, ":")
		}
		expected = append(expected, fmt.Sprintf("x.go:%d:%s: %s", at, column, line[m[4]:m[5]]))
	}
	return expected
}

func compare(t *testing.T, expected, found []string) {
	t.Helper()
	for _, e := range expected {
		if !slices.Contains(found, e) {
			t.Errorf("missing %s", e)
		}
	}
	for _, f := range found {
		if !slices.Contains(expected, f) {
			t.Errorf("unexpected %s", f)
		}
	}
}
