package readme

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`((?:Test|Fuzz|Example)\\w+)`")

// TestNamedTestsExist checks that every test which a page names exists.
func TestNamedTestsExist(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			tests.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(tests.String(), "func "+m[1]+"(") {
				t.Errorf("%s: there is no %s", strings.TrimPrefix(page, top+"/"), m[1])
			}
		}
	}
}
