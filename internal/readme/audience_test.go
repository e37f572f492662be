package readme

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var firstText = regexp.MustCompile(`(?m)^# .*\n\n(.*)`)

// TestPagesSayWhomTheyAreFor checks the first line below the title of every page except the readme, which is for everybody.
func TestPagesSayWhomTheyAreFor(t *testing.T) {
	for _, page := range pages(t) {
		if page == readme || strings.Contains(page, ".github") || strings.Contains(page, "testdata") {
			continue
		}
		m := firstText.FindStringSubmatch(read(t, page))
		if m == nil || !strings.HasPrefix(m[1], "For ") {
			t.Errorf("%s: the first line is %q; expected whom the page is for: For those who …", filepath.ToSlash(page), m)
		}
	}
}
