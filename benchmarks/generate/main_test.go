package main

import (
	"strings"
	"testing"
)

// TestEveryCaseIsEdited keeps a run from measuring what is already there.
func TestEveryCaseIsEdited(t *testing.T) {
	for _, c := range benchmarks() {
		if c.source != "" && !strings.Contains(c.source, "limit="+edit+" ") {
			t.Errorf("%s: its source has no limit=%s", c.name, edit)
		}
	}
}
