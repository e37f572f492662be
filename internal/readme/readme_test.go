package readme

import (
	"path/filepath"
	"strings"
	"testing"
)

var readme = filepath.Join(top, "README.md")

// TestDemoIsQuotedAsItIs compares the output of the demonstration in README.md with its real output.
func TestDemoIsQuotedAsItIs(t *testing.T) {
	printed := read(t, filepath.Join(top, "examples/sms/testdata/demo.txt"))
	quoted := 0
	for _, m := range fence.FindAllStringSubmatch(read(t, readme), -1) {
		block, ok := strings.CutPrefix(m[2], "$ make demo\n")
		if !ok {
			continue
		}
		for _, part := range strings.Split(block, "…\n") {
			quoted++
			if !strings.Contains(printed, part) {
				t.Errorf("the demonstration does not print this:\n%s", part)
			}
		}
	}
	if quoted == 0 {
		t.Error("README.md does not quote the demonstration")
	}
}

// TestReadmeIsShort limits the length of README.md. Reference belongs in docs.
func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, readme), "\n"); n > 200 {
		t.Errorf("README.md has %d lines; expected at most 200", n)
	}
}
