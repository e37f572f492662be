package lua

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// The script has a value in place of each constant, and uses each that package engine and codec.go have for it.
func TestConstants(t *testing.T) {
	noTexts := regexp.MustCompile(`--.*|'[^']*'`).ReplaceAllString(body, "")
	tables := found(`local ([A-Z][A-Z_]+) = \{`, body)
	unknown := slices.DeleteFunc(found(`\b([A-Z][A-Z_]+)\b`, noTexts), func(name string) bool { return slices.Contains(tables, name) })
	if len(unknown) > 0 {
		t.Errorf("nobody defines %q", unknown)
	}
	var all strings.Builder
	for _, name := range files() {
		for line := range strings.Lines(mustRead(name)) {
			if !strings.HasPrefix(line, "--") {
				all.WriteString(line)
			}
		}
	}
	used := found(`\b([A-Z][A-Z_]+)\b`, all.String())
	for _, table := range []map[string]int64{engine.Constants, numbers} {
		for name := range table {
			if !slices.Contains(used, name) {
				t.Errorf("no Lua file uses %s", name)
			}
		}
	}
}
