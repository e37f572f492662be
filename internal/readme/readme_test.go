package readme

import (
	"path/filepath"
	"strings"
	"testing"
)

var readme = filepath.Join(top, "README.md")

// TestDemoIsQuotedAsItIs compares what README.md shows of the demonstration with what that prints.
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

// TestReadmeIsShort keeps reference out of README.md: that belongs in docs.
func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, readme), "\n"); n > 200 {
		t.Errorf("README.md has %d lines; expected at most 200", n)
	}
}
