package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every part runs that needs only a Redis server, and is written to its place in the README.
func TestQuick(t *testing.T) {
	t.Parallel()
	page := read(t, "README.md")
	out := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(out, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := measure(quick, "", out); err != nil {
		t.Fatal(err)
	}
	written := read(t, out)
	between := regexp.MustCompile(`(?s)<!-- begin (\w+) -->\n.*?<!-- end \w+ -->`)
	if between.ReplaceAllString(written, "$1") != between.ReplaceAllString(page, "$1") {
		t.Error("what stands between the parts has changed")
	}
	if got, want := titles(written), titles(page); got != want {
		t.Errorf("the tables are now\n%s\nexpected\n%s", got, want)
	}
}

func titles(page string) (all string) {
	for _, t := range tablesOf(page) {
		all += t.title + "\n"
	}
	return all
}

func TestReplaceNeedsBothLines(t *testing.T) {
	for _, text := range []string{"prose\n", "prose\n<!-- begin process -->\n", "prose\n<!-- end process -->\n"} {
		file := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := replace(file, "process", "tables"); err == nil || !strings.Contains(err.Error(), "end process") || read(t, file) != text {
			t.Errorf("%q: error %v, and the file is %q; expected an error about the missing line, and no change", text, err, read(t, file))
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0.00", 9.876: "9.88", 12.345: "12.3", 999.6: "1,000", 1234567: "1,234,567"} {
		if got := number(x); got != want {
			t.Errorf("number(%v): got %s, want %s", x, got, want)
		}
	}
}

// The calls of every case whose instructions are counted are admitted or refused as they should be. Valgrind is not needed for that.
func TestCounted(t *testing.T) {
	for _, c := range counted() {
		if err := repeatCase(c.name, 2*len(users)); err != nil {
			t.Error(err)
		}
	}
}

// ratelimit generates from an input, which each run edits. Otherwise a run would measure a tool that has nothing to do.
func TestGenerate(t *testing.T) {
	t.Parallel()
	for _, in := range inputs() {
		if !strings.Contains(in.source, "limit="+edited+" ") {
			t.Errorf("%s: its source has no limit=%s", in.name, edited)
		}
	}
	if _, err := generateSection(t.TempDir(), generators[:1], []input{fifty()}, 1).measure(); err != nil {
		t.Error(err)
	}
}
