package readme

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	firstText = regexp.MustCompile(`(?m)^# .*\n\n(.*)`)
	audience  = regexp.MustCompile(`^(For|If|When|Before|To) `)
)

// TestPagesSayWhomTheyAreFor checks that the first line below the title of each page says for whom or for what the page is. The readme is for everybody.
func TestPagesSayWhomTheyAreFor(t *testing.T) {
	for _, page := range pages(t) {
		if page == readme || strings.Contains(page, ".github") || strings.Contains(page, "testdata") {
			continue
		}
		m := firstText.FindStringSubmatch(read(t, page))
		if m == nil || !audience.MatchString(m[1]) {
			t.Errorf("%s: the first line is %q; expected whom the page is for, or when: For operators: …, When you update …", filepath.ToSlash(page), m)
		}
	}
}
