package readme

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	anyFence = regexp.MustCompile("(?ms)^```.*?^```$")
	span     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
)

// TestLinks checks every link between pages of this repository: the file must exist, and so must the heading of an anchor.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text := span.ReplaceAllString(anyFence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if err := follow(t, page, m[1]); err != nil {
				t.Errorf("%s: %s: %v", strings.TrimPrefix(page, top+"/"), m[1], err)
			}
		}
	}
}

// pages returns all Markdown files.
func pages(t *testing.T) []string {
	var found []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}

// follow returns an error if a link of a page leads nowhere. It does not follow links to other sites.
func follow(t *testing.T, page, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.IsAbs() {
		return err
	}
	file := page
	if u.Path != "" {
		file = filepath.Join(filepath.Dir(page), u.Path)
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if u.Fragment != "" && !slices.Contains(anchors(read(t, file)), u.Fragment) {
		return fmt.Errorf("no heading has the anchor %s", u.Fragment)
	}
	return nil
}

// anchors returns the anchors of the headings of a page, as code hosts form them.
func anchors(text string) []string {
	var found []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		anchor := anchorOf(m[1])
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		found = append(found, anchor)
	}
	return found
}

func anchorOf(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			return unicode.ToLower(c)
		case c == ' ':
			return '-'
		}
		return -1
	}, title)
}

func TestAnchors(t *testing.T) {
	text := "# A page\n\n## `ratelimit vet`\n\n```sh\n# no heading\n```\n\n## Redis: what is kept?\n\n## A page\n"
	want := []string{"a-page", "ratelimit-vet", "redis-what-is-kept", "a-page-1"}
	if got := anchors(text); !slices.Equal(got, want) {
		t.Errorf("got %q; expected %q", got, want)
	}
}
