package scripts

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestDependabot checks that Dependabot looks into every folder with a go.mod file.
func TestDependabot(t *testing.T) {
	var want, got []string
	for _, depth := range []string{"", "*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(top, depth, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			want = append(want, path.Dir(filepath.ToSlash(file[len(top):])))
		}
	}
	text, err := os.ReadFile(filepath.Join(top, ".github/dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- (/.*)$`).FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf(".github/dependabot.yml has the folders\n%q; expected\n%q", got, want)
	}
}
