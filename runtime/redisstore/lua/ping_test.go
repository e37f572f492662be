package lua

import (
	"regexp"
	"slices"
	"testing"
)

// ping.lua tries just what the script runs.
func TestPingTriesEachCommand(t *testing.T) {
	var tried []string
	for _, found := range regexp.MustCompile(`{ '([A-Z]+)'`).FindAllStringSubmatch(Ping, -1) {
		tried = append(tried, found[1])
	}
	if slices.Sort(tried); !slices.Equal(tried, Commands()) {
		t.Errorf("ping.lua tries %q; the script runs %q", tried, Commands())
	}
}
