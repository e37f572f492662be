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
