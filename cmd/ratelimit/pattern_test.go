package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneFile(t *testing.T) {
	dir := module(t, "x.go", source, "y.go", strings.ReplaceAll(source, "X", "Y"))
	expect(t, 0, dir, "x.go")
	read(t, dir, "x_ratelimit.go")
	if _, err := os.Stat(filepath.Join(dir, "y_ratelimit.go")); err == nil {
		t.Error("the other file was generated, too")
	}
}

func TestMethodInAnotherFile(t *testing.T) {
	method := "package x\n\n//ratelimit:rule limit=1 per=1m\nfunc (*S) M() error { return nil }\n"
	dir := module(t, "s.go", "package x\n\n//ratelimit:wrap\ntype S struct{}\n", "m.go", method)
	if _, stderr := expect(t, 0, dir, "m.go"); stderr != "m.go:3:13: warning: the wrapper of S is generated from s.go\n" {
		t.Errorf("generating from m.go alone said %q", stderr)
	}
	expect(t, 0, dir, "s.go")
	if out := read(t, dir, "s_ratelimit.go"); !strings.Contains(out, "Limit: 1,") {
		t.Errorf("the rule of m.go is missing:\n%s", out)
	}
	expect(t, 0, dir, "-check", ".")
}

func TestPatterns(t *testing.T) {
	sub := strings.ReplaceAll(source, "package x", "package sub")
	dir := module(t, "sub/s.go", sub, "sub/testdata/t.go", sub, "vendor2/v.go", "package v\n")
	for _, pattern := range []string{"./...", "./sub", "example.com/x/sub", "example.com/x/...", dir + "/sub"} {
		expect(t, 1, dir, "-check", pattern)
	}
	for _, args := range [][]string{{"-check", ".", "./vendor2", "./vendor2/..."}, {"-list", "./vendor2"}, {"./vendor2"}} {
		if _, stderr := expect(t, 1, dir, args...); !strings.HasPrefix(stderr, "no //ratelimit: directives in ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %q", args, stderr)
		}
	}
	for pattern, want := range map[string]string{
		"lst":                       "lst is neither a package nor a command; see ratelimit -h\n",
		"example.com/x/nothing/...": "example.com/x/nothing/...: no package matches\n",
	} {
		if _, stderr := expect(t, 1, dir, pattern); stderr != want {
			t.Errorf("%s: %q", pattern, stderr)
		}
	}
	for _, pattern := range []string{"./nowhere", "nowhere.go", "example.com/nowhere"} {
		if _, stderr := expect(t, 1, dir, pattern); !strings.Contains(stderr, "nowhere") || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: %q", pattern, stderr)
		}
	}
}

// TestBrokenPlaces generates where the go command or the file system fails.
func TestBrokenPlaces(t *testing.T) {
	dir := module(t, "sub/s.go", source)
	broken := module(t, "x.go", source, "go.mod", "modul x\n")
	if err := os.Symlink("nothing", filepath.Join(dir, "sub", "y.go")); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"sub/s.go", "./sub", "./...", "example.com/x/sub"} {
		if _, stderr := expect(t, 1, dir, pattern); stderr != filepath.Join("sub", "y.go")+": a symbolic link to nothing\n" {
			t.Errorf("%s: %q", pattern, stderr)
		}
	}
	modless := t.TempDir()
	write(t, modless, "x.go", source)
	errs := map[string]string{
		modless: "go: go.mod file not found in ",
		broken:  "go: errors parsing go.mod: go.mod:1: unknown directive: modul\n",
	}
	for _, pattern := range []string{".", "./..."} {
		for dir, want := range errs {
			if _, stderr := expect(t, 1, dir, pattern); !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: %q", pattern, stderr)
			}
		}
	}
}

func TestNestedModule(t *testing.T) {
	dir := module(t, "x.go", source, "nested/n.go", "package n\n//ratelimit:rule is not read\n", "nested/go.mod", "module example.com/n\n")
	expect(t, 0, dir, "./...")
	goCommand(t, dir, "vet", "./...")
}

func TestTags(t *testing.T) {
	dir := module(t, "x.go", "//go:build special\n\n"+source, "doc.go", "package x\n")
	const missing = "x_ratelimit.go: missing; run: go tool ratelimit -tags=special .\n"
	if _, stderr := expect(t, 1, dir, "-check", "-tags=special", "."); stderr != missing {
		t.Errorf("-check says %q", stderr)
	}
	expect(t, 0, dir)
	expect(t, 0, dir, "-check", "-tags=special")
	if out := read(t, dir, "x_ratelimit.go"); !strings.Contains(out, "\n//go:build special\n") {
		t.Errorf("the constraint is lost:\n%s", out)
	}
	expect(t, 0, dir, "-check")
	goCommand(t, dir, "vet", "-tags=special", ".")
}

func TestGoGenerate(t *testing.T) {
	dir := module(t, "x.go", strings.Replace(source, "\n", "\n\n//go:generate go tool ratelimit $GOFILE\n", 1), "use.go", "package x\n\nvar _ = NewLimitedX\n")
	goCommand(t, dir, "generate", "./...")
	goCommand(t, dir, "vet", "./...")
}
