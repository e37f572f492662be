package readme

import (
	"path/filepath"
	"strings"
	"testing"
)

var readme = filepath.Join(top, "README.md")

// TestReadmeIsShort limits the length of README.md. Reference belongs in docs.
func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, readme), "\n"); n > 200 {
		t.Errorf("README.md has %d lines; expected at most 200", n)
	}
}
