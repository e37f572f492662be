package readme

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	indented = regexp.MustCompile(`(?m)^    .*$`)
	comment  = regexp.MustCompile(`\s+#.*$`)
)

// shownBy returns the lines of the blocks of code of a page, without prompts and comments, and the texts in backquotes elsewhere.
func shownBy(t *testing.T, page string) (lines, spans map[string]bool) {
	text := read(t, filepath.Join(top, "docs", page))
	lines, spans = map[string]bool{}, map[string]bool{}
	for _, block := range append(fence.FindAllString(text, -1), indented.FindAllString(text, -1)...) {
		for line := range strings.Lines(block) {
			line = strings.TrimPrefix(strings.TrimSpace(comment.ReplaceAllString(line, "")), "$ ")
			if len(strings.Fields(line)) > 1 { // others have a brace or the name of a language
				lines[line] = true
			}
		}
	}
	for _, text := range span.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		spans[strings.Trim(text, "`")] = true
	}
	return lines, spans
}

// commandName matches the name of a command: "ratelimitctl doctor", "ratelimitctl settings recover".
var commandName = regexp.MustCompile(`^ratelimitctl [a-z]+( [a-z]+)?$`)

// The page for those on call and that of the tool show nothing twice: no line of code of one is in the other. A sentence may name a command, but
// not repeat a command line that the other page shows.
func TestNothingTwice(t *testing.T) {
	operating, tool := "operating.md", "ratelimitctl.md"
	for _, pages := range [][2]string{{operating, tool}, {tool, operating}} {
		lines, _ := shownBy(t, pages[0])
		others, spans := shownBy(t, pages[1])
		if len(lines) < 10 || len(spans) < 10 {
			t.Fatalf("%s has %d lines of code, and %s %d texts in backquotes", pages[0], len(lines), pages[1], len(spans))
		}
		for line := range lines {
			if others[line] || spans[line] && !commandName.MatchString(line) {
				t.Errorf("%s shows %q, and so does %s", pages[0], line, pages[1])
			}
		}
	}
}
