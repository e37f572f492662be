package main

import (
	"strings"
	"testing"
)

// TestEveryCaseIsEdited checks that each run edits the source. Otherwise a run would measure a tool that has nothing to do.
func TestEveryCaseIsEdited(t *testing.T) {
	for _, c := range benchmarks() {
		if c.source != "" && !strings.Contains(c.source, "limit="+edit+" ") {
			t.Errorf("%s: its source has no limit=%s", c.name, edit)
		}
	}
}

// TestCases runs ratelimit once for each case that needs no other module.
func TestCases(t *testing.T) {
	t.Chdir("..")
	ours, err := build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range benchmarks() {
		if c.requires != nil {
			continue
		}
		dir := t.TempDir()
		if err := c.write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := c.run(ours, dir, 0); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
