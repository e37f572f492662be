package generator_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestGoGenerate runs go generate with variables for the file and the package, in a test file and in a file with a space in its name.
func TestGoGenerate(t *testing.T) {
	t.Parallel()
	const command = "//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit "
	dir := place(t, `
-- by_file/my sender.go --
package byfile

`+command+`$GOFILE

//ratelimit:rule limit=1 per=1m
type Sender interface{ Send() error }
-- by_file/other.go --
package byfile

//ratelimit:rule limit=1 per=1m
type Other interface{ M() error }
-- by_file/fake_test.go --
package byfile_test

`+command+`-check=false $GOFILE

//ratelimit:rule limit=1 per=1m
type Fake interface{ Send() error }

var _ = NewLimitedFake
-- name/x.go --
package name

`+command+`../$GOPACKAGE

//ratelimit:rule limit=1 per=1m
type X interface{ M() error }

var _ = NewLimitedX
`)
	goIn(t, dir, "generate", "./...")
	goIn(t, dir, "vet", "./...")
	var found []string
	for _, pattern := range []string{"*/*_ratelimit.go", "*/*_ratelimit_test.go"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			found = append(found, filepath.Base(name))
		}
	}
	if got := strings.Join(found, ", "); got != "my sender_ratelimit.go, x_ratelimit.go, fake_ratelimit_test.go" {
		t.Errorf("generated are %s", got)
	}
}

// TestFlags generates under flags and settings for the go command, from the environment and from the caller.
func TestFlags(t *testing.T) {
	dir := place(t, "-- x.go --\n//go:build special\n\n"+plain+"-- x_windows_arm64.go --\n"+strings.ReplaceAll(plain, "X", "W")+
		"-- doc.go --\npackage x\n-- rare_test.go --\n//go:build rare\n\n"+strings.ReplaceAll(plain, "X", "T")+
		"-- never.go --\n//go:build special && !special\n\n"+strings.ReplaceAll(plain, "X", "N")+
		"-- old.go --\n//go:build go1.999\n\n"+strings.ReplaceAll(plain, "X", "O")+
		"-- script.go --\n//go:build ignore\n\n"+strings.ReplaceAll(strings.ReplaceAll(plain, "package x", "package main"), "X", "S"))
	all := generator.Config{Dir: dir, Patterns: []string{"./..."}}
	const note = ".go:1:1: note: the directives in this file are left out, as its build constraint is met by no build"
	none := []string{"never" + note, "old" + note, "script" + note}
	names, notes := written(t, all)
	if want := []string{"rare_ratelimit_test.go", "x_ratelimit.go", "x_windows_arm64_ratelimit.go"}; !slices.Equal(names, want) || !slices.Equal(notes, none) {
		t.Errorf("wrote %q, said %q", names, notes)
	}
	goIn(t, dir, "vet", "-tags=special,rare", ".")

	t.Setenv("GOFLAGS", "-mod=mod -tags=special")
	expectWritten(t, all)
	t.Setenv("GOFLAGS", "-mod=mod")
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./..."}, Tags: "other,special"})
	t.Setenv("GOOS", "windows")
	t.Setenv("GOARCH", "arm64")
	expectWritten(t, all)
	src, err := os.ReadFile(filepath.Join(dir, "x_windows_arm64_ratelimit.go"))
	if err != nil || !bytes.Contains(src, []byte("\n//go:build windows && arm64\n")) {
		t.Errorf("it is built elsewhere, too: %v\n%s", err, src)
	}
}

// TestModfile names another go.mod file in the environment, among other flags, and an overlay, which gets a warning.
func TestModfile(t *testing.T) {
	dir := place(t, "-- x.go --\n"+plain+"-- overlay.json --\n{}\n")
	for _, ext := range []string{"mod", "sum"} {
		if err := os.Rename(filepath.Join(dir, "go."+ext), filepath.Join(dir, "the other."+ext)); err != nil {
			t.Fatal(err)
		}
	}
	testmodule.Write(t, filepath.Join(dir, "go.mod"), "module example.com/wrong\n\nrequire example.com/nowhere v1.0.0\n")
	all := generator.Config{Dir: dir, Patterns: []string{"./..."}}
	t.Setenv("GOFLAGS", "-mod=mod '-modfile=the other.mod' -overlay=overlay.json")
	names, notes := written(t, all)
	const note = "warning: GOFLAGS has -overlay=overlay.json, but directives are read from the files as they are on the disk"
	if !slices.Equal(names, []string{"x_ratelimit.go"}) || !slices.Equal(notes, []string{note}) {
		t.Errorf("wrote %q, said %q", names, notes)
	}
	testmodule.Write(t, filepath.Join(dir, "overlay.json"), `{"Replace": {"y.go": "x.go"}}`)
	if _, err := generator.Generate(t.Context(), all); err == nil || err.Error() != "y.go: no such file or directory" {
		t.Errorf("with a file that only the overlay has: %v", err)
	}
	t.Setenv("GOFLAGS", "--modfile=nowhere.mod")
	if _, err := generator.Generate(t.Context(), all); err == nil || !strings.Contains(err.Error(), "nowhere.mod") {
		t.Errorf("with a file that is not there: %v", err)
	}
}
