package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	if got := Of("tool"); !strings.HasPrefix(got, "tool ") || !strings.HasSuffix(got, " "+runtime.Version()) {
		t.Errorf("got %q", got)
	}
	own := &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}
	as := &debug.BuildInfo{
		Main: debug.Module{Path: "example.com/shop", Version: "(devel)"},
		Deps: []*debug.Module{{Path: "example.com/other", Version: "v9.9.9"}, {Path: module, Version: "v1.2.3"}},
	}
	for _, info := range []*debug.BuildInfo{own, as} {
		if got := of(info); got != "v1.2.3" {
			t.Errorf("%s: got %s", info.Main.Path, got)
		}
	}
}
