package marked

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var part = Part{Begin: "<!-- begin -->", End: "<!-- end of it -->"}

// replace replaces the part of a file with the content before, and returns the new content.
func replace(t *testing.T, p Part, before, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	err := p.Replace(file, text)
	got, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(got), err
}

func TestReplace(t *testing.T) {
	appended := part
	appended.Heading = "## Generating"
	const between = "<!-- begin -->\n\nsecond\n<!-- end of it -->\n"
	for name, c := range map[string]struct {
		Part
		before, want string
	}{
		"between the lines": {part, "a\n" + strings.Replace(between, "second", "first", 1) + "b\n", "a\n" + between + "b\n"},
		"again":             {appended, "a\n" + strings.Replace(between, "second", "first", 1), "a\n" + between},
		"under a heading":   {appended, "# Title\n", "# Title\n\n## Generating\n\n" + between},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := replace(t, c.Part, c.before, "second"); err != nil || got != c.want {
				t.Errorf("the file is %q, expected %q; the error is %v", got, c.want, err)
			}
		})
	}
}

func TestReplaceNeedsBothLines(t *testing.T) {
	appended := part
	appended.Heading = "## Generating"
	for name, c := range map[string]struct {
		Part
		before string
	}{
		"neither": {part, "prose\n"}, "the first alone": {part, "prose\n<!-- begin -->\n"},
		"the first alone, with a heading": {appended, "<!-- begin -->\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := replace(t, c.Part, c.before, "tables")
			if err == nil || !strings.Contains(err.Error(), "end of it") {
				t.Errorf("the error is %v, expected one about the missing end", err)
			}
			if got != c.before {
				t.Errorf("the file is %q, expected it to be left alone", got)
			}
		})
	}
}
