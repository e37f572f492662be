package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var draw = flag.Bool("draw", false, "draw the pictures of docs/pictures again")

// words matches the words of a command, which may be in single quotes.
var words = regexp.MustCompile(`'[^']*'|\S+`)

// TestPictures runs the commands in docs/pictures/README.md and compares their pictures with those in the folder.
func TestPictures(t *testing.T) {
	t.Chdir("../..")
	shown := read(t, "docs/pictures/README.md")
	there, drawn := pictures(t), map[string]bool{}
	for _, line := range strings.Split(shown, "\n") {
		command, ok := strings.CutPrefix(line, "    ratelimit simulate ")
		if !ok {
			continue
		}
		var args []string
		for _, word := range words.FindAllString(command, -1) {
			args = append(args, strings.Trim(word, "'"))
		}
		i := slices.Index(args, "-svg") + 1
		name, file := args[i], filepath.Join(t.TempDir(), "picture.svg")
		args[i], drawn[name] = file, true
		expect(t, 0, ".", append([]string{"simulate"}, args...)...)
		if got := read(t, file); got != there[name] {
			if !*draw {
				t.Errorf("%s is not up to date; run make pictures", name)
			} else if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(shown, "]("+filepath.Base(name)+")") {
			t.Errorf("%s is drawn, but not shown", name)
		}
	}
	for name := range there {
		if !drawn[name] {
			t.Errorf("no command draws %s", name)
		}
	}
}

// pictures returns the pictures in the folder, by name.
func pictures(t *testing.T) map[string]string {
	names, err := filepath.Glob("docs/pictures/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		found[name] = read(t, name)
	}
	return found
}
