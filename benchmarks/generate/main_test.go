package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplaceMarked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(file, []byte("# Title\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := replaceMarked(file, text); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if want := "# Title\n\n## Generating\n\n" + begin + "\n" + text + "\n" + end; err != nil || string(got) != want {
			t.Errorf("the file is %q, expected %q", got, want)
		}
	}
	if err := os.WriteFile(file, []byte(begin), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceMarked(file, ""); err == nil || !strings.Contains(err.Error(), "end of generate") {
		t.Errorf("the error is %v, expected one about the missing end", err)
	}
}

// TestEveryCaseIsEdited keeps a run from measuring what is already there.
func TestEveryCaseIsEdited(t *testing.T) {
	for _, c := range benchmarks() {
		if c.source != "" && !strings.Contains(c.source, "limit="+edit+" ") {
			t.Errorf("%s: its source has no limit=%s", c.name, edit)
		}
	}
}
