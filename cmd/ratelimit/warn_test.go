package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	suspicious = `package x

type X interface {
	//ratelimit:rule key="{a}" limit=2 per=1m algorithm=fixed-window
	M(a string) error
}
`
	message = "up to 3 permits can pass around the end of a fixed window of 2; sliding-window keeps to 2 in any 1m\n"
)

func TestWarningsArePrinted(t *testing.T) {
	dir := module(t, "x.go", suspicious)
	const want = "x.go:4:54: warning: " + message
	for _, c := range []struct {
		status int
		args   []string
		more   string
	}{
		{1, []string{"-check"}, "x_ratelimit.go: missing; run: go tool ratelimit\n"},
		{0, []string{"-list"}, ""},
		{0, nil, ""},
		{0, []string{"-check"}, ""},
	} {
		if _, stderr := expect(t, c.status, dir, c.args...); stderr != want+c.more {
			t.Errorf("%v: printed\n%s", c.args, stderr)
		}
	}
}

func TestWarningsAsErrors(t *testing.T) {
	dir := module(t, "x.go", suspicious, "y/y.go", strings.Replace(source, "package x", "package y", 1))
	for _, args := range [][]string{{"-warn=error"}, {"-warn", "error", "-check"}, {"-warn=error", "-list"}} {
		if stdout, stderr := expect(t, 1, dir, append(args, "./...")...); stderr != "x.go:4:54: "+message || stdout != "" {
			t.Errorf("%v: printed %q and\n%s", args, stdout, stderr)
		}
		for _, name := range []string{"x_ratelimit.go", "y/y_ratelimit.go"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%v wrote %s", args, name)
			}
		}
	}
	expect(t, 0, dir, "-warn=error", "./y")
	expect(t, 0, dir, "./...")
	if _, stderr := expect(t, 1, dir, "-warn=error", "-check", "./..."); stderr != "x.go:4:54: "+message {
		t.Errorf("-check of what is up to date printed\n%s", stderr)
	}
	expect(t, 0, dir, "-warn=error", "-check", "./y")
}

// TestNotesAreNoWarnings expects that -warn=error ignores notes.
func TestNotesAreNoWarnings(t *testing.T) {
	dir := module(t, "x.go", "//go:build ignore\n\n"+source, "doc.go", "package x\n")
	if _, stderr := expect(t, 0, dir, "-warn=error"); !strings.Contains(stderr, "x.go:1:1: note: ") {
		t.Errorf("printed %q", stderr)
	}
}

// TestWarningsBesideErrors expects warnings and errors in source order.
func TestWarningsBesideErrors(t *testing.T) {
	dir := module(t, "x.go", strings.Replace(suspicious, "M(", "//ratelimit:rule limit=1\n\tM(", 1))
	const wrong = "x.go:5:14: per: a rule needs a window: per=1m, cron= for calendar times, or every= with an anchor\n"
	if _, stderr := expect(t, 1, dir); stderr != "x.go:4:54: warning: "+message+wrong {
		t.Errorf("printed\n%s", stderr)
	}
	if _, stderr := expect(t, 1, dir, "-warn=error"); stderr != "x.go:4:54: "+message+wrong {
		t.Errorf("as errors, printed\n%s", stderr)
	}
}

// TestWarningsOfLoading expects a warning for a syntax error in a function body, which does not prevent generating.
func TestWarningsOfLoading(t *testing.T) {
	dir := module(t, "x.go", source+"\nfunc f() {\n\tx := := 1\n}\n")
	if _, stderr := expect(t, 0, dir); !strings.Contains(stderr, "x.go:9:7: warning: ") {
		t.Errorf("printed\n%s", stderr)
	}
	if _, stderr := expect(t, 1, dir, "-warn=error"); !strings.HasPrefix(stderr, "x.go:9:7: ") || strings.Contains(stderr, "warning") {
		t.Errorf("as errors, printed\n%s", stderr)
	}
	if _, stderr := expect(t, 1, dir, "-json", "-warn=error"); !strings.HasPrefix(stderr, `{"file":"x.go","line":9,"column":7,`) ||
		!strings.Contains(stderr, `"severity":"error","code":"load","message":"`) {
		t.Errorf("as JSON, printed\n%s", stderr)
	}
}
