package generator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// goIn runs the go command.
func goIn(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out
}

// place creates a module with the files of a txtar archive, in a folder with spaces in its path.
func place(t *testing.T, files string) string {
	t.Helper()
	root := newModule(t, "example.com/place")
	dir := filepath.Join(filepath.Dir(root), "a place with spaces")
	if err := os.Rename(root, dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(files)).Files {
		testmodule.Write(t, filepath.Join(dir, f.Name), f.Data)
	}
	return dir
}

// written generates and writes in dir, and returns the paths of the new files, and the notes.
func written(t *testing.T, cfg generator.Config) (names, notes []string) {
	t.Helper()
	result, err := generator.Generate(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := generator.Write(result.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stale {
		rel, err := filepath.Rel(cfg.Dir, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(rel))
	}
	return names, warnings(result)
}

func expectWritten(t *testing.T, cfg generator.Config, expected ...string) {
	t.Helper()
	if names, notes := written(t, cfg); !slices.Equal(names, expected) {
		t.Errorf("%v: wrote %q, expected %q; %q", cfg.Patterns, names, expected, notes)
	}
}

const plain = `package x

//ratelimit:rule limit=1 per=1m
type X interface{ M() error }
`

// TestVendored generates in a module whose dependencies are only in the vendor folder.
func TestVendored(t *testing.T) {
	dir := place(t, `
-- x.go --
package x

import (
	"example.com/dep"

	_ "github.com/ratelimit-go/ratelimit/runtime/wrap"
)

//ratelimit:rule limit=1 per=1m
type X interface {
	dep.Doer
	Do(*dep.Job) error
}
-- dep/go.mod --
module example.com/dep

go 1.26
-- dep/dep.go --
package dep

import "example.com/dep/internal/hidden"

type Doer interface{ Do(*hidden.Job) error }

type Job = hidden.Job
-- dep/internal/hidden/h.go --
package hidden

type Job struct{}
`)
	goIn(t, dir, "mod", "edit", "-require=example.com/dep@v1.0.0", "-replace=example.com/dep@v1.0.0=./dep")
	goIn(t, dir, "mod", "tidy")
	goIn(t, dir, "mod", "vendor")
	if err := os.RemoveAll(filepath.Join(dir, "dep")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-mod=vendor")
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./..."}}, "x_ratelimit.go")
	goIn(t, dir, "vet", ".")

	if err := os.RemoveAll(filepath.Join(dir, "vendor", "example.com")); err != nil {
		t.Fatal(err)
	}
	_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"."}})
	const expected = "x.go:4:2: could not import example.com/dep (cannot find module providing package example.com/dep: import lookup disabled by -mod=vendor; " +
		"to mend the vendor folder: go mod vendor)"
	if err == nil || err.Error() != expected {
		t.Errorf("with a package taken out of the vendor folder: %v, expected %s", err, expected)
	}
}

// TestCgo generates from a file that imports C, and from one beside it. It expects errors about types that only cgo files can name.
func TestCgo(t *testing.T) {
	dir := place(t, `
-- beside.go --
package x

// int one(void) { return 1; }
import "C"

func one() int { return int(C.one()) }
-- x.go --
package x

type X interface {
	//ratelimit:rule limit=1 per=1m
	M(n int) error
}

var _ = one
-- c.go --
package x

// typedef int count;
import "C"

//ratelimit:rule limit=1 per=1m
type InC interface{ M() error }

type count = C.count

type Count C.count

type Structs struct{ of C.count }

type Counts interface {
	//ratelimit:rule limit=1 per=1m name=counts
	Of(Count, *Structs) (Count, Structs, error)
}
-- d.go --
//go:build cgo

package x

type Beside interface {
	//ratelimit:rule limit=1 per=1m name=beside key="{label(n)}"
	Of(n Count) (Count, error)
}

func label(n Count) string { return string(rune(n)) }
-- shadowed/s.go --
package shadowed

import "C"

type Num C.int

func new() {}

type X interface {
	//ratelimit:rule limit=1 per=1m
	M(n int) (Num, error)
}
`)
	t.Setenv("CGO_ENABLED", "1")
	all := generator.Config{Dir: dir, Patterns: []string{"."}}
	expectWritten(t, all, "c_ratelimit.go", "d_ratelimit.go", "x_ratelimit.go")
	goIn(t, dir, "vet", ".")
	_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./shadowed"}})
	const shadowed = "shadowed/s.go:9:6: what is generated for X needs Go's own new, but another one hides it here"
	if err == nil || err.Error() != shadowed {
		t.Errorf("with another new: %v, expected %s", err, shadowed)
	}
	if src, err := os.ReadFile(filepath.Join(dir, "c_ratelimit.go")); err != nil || !bytes.Contains(src, []byte("\n//go:build cgo\n")) {
		t.Errorf("it is built without cgo, too: %v\n%s", err, src)
	}

	testmodule.Write(t, filepath.Join(dir, "c.go"), []byte(`package x

import "C"

type number C.int

type alias = C.int

type InC interface {
	//ratelimit:rule limit=1 per=1m
	M(string, ...*C.int) error
	//ratelimit:rule limit=1 per=1m
	N(alias) error
	//ratelimit:rule limit=1 per=1m key="{n}"
	Key(n number) error
	//ratelimit:rule limit=1 per=1m key="{text(n)}"
	Text(n number) error
}

//ratelimit:rule limit=1 per=1m
func (s) M(c C.int) error { return nil }

type s struct{}

func text(n number) string { return "" }
`))
	testmodule.Write(t, filepath.Join(dir, "d.go"), "package x\n\nvar other undefined\n")
	const first = "c.go:11:16: a wrapper cannot name types of C; declare one of Go for C.int, such as type T C.int"
	if _, err := generator.Generate(t.Context(), all); err == nil || !strings.HasPrefix(err.Error(), first) {
		t.Errorf("beside another error: %v, expected %s", err, first)
	}
	for _, name := range []string{"d.go", "d_ratelimit.go"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = generator.Generate(t.Context(), all)
	const expected = first + `
c.go:13:2: a type in this declaration is not known; a wrapper cannot name types of C
c.go:14:40: a number of unknown kind has no stable text form
c.go:21:14: a wrapper cannot name types of C; declare one of Go for C.int, such as type T C.int`
	if err == nil || err.Error() != expected {
		t.Errorf("types of C: %v, expected %s", err, expected)
	}

	t.Setenv("CGO_ENABLED", "0")
	if _, err := generator.Generate(t.Context(), all); err == nil || err.Error() != expected {
		t.Errorf("without cgo: %v, expected %s", err, expected)
	}
}

// endsAt is a context that ends after a number of calls of its methods.
type endsAt struct {
	context.Context
	left atomic.Int32
}

func (c *endsAt) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestEnded expects all files or none, wherever the context ends.
func TestEnded(t *testing.T) {
	t.Parallel()
	dir := place(t, "-- x.go --\n"+plain+"-- y/y.go --\n"+plain)
	for n := range int32(100) {
		ctx := &endsAt{Context: t.Context()}
		ctx.left.Store(n)
		result, err := generator.Generate(ctx, generator.Config{Dir: dir, Patterns: []string{"./..."}})
		if err == nil && len(result.Files) == 2 && ctx.left.Load() >= 0 { // nobody was told that it ended
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d questions: %v, %v", n, result, err)
		}
	}
	t.Error("it never came to an end")
}

// TestDefaults generates from the package in the working directory by default, and expects an error for a folder that does not exist.
func TestDefaults(t *testing.T) {
	dir := place(t, "-- x.go --\n"+plain+"-- sub/x.go --\n"+plain)
	t.Chdir(dir)
	result, err := generator.Generate(t.Context(), generator.Config{})
	if err != nil || len(result.Files) != 1 || result.Files[0].Name != filepath.Join(dir, "x_ratelimit.go") {
		t.Errorf("without a configuration: %v, %v", result, err)
	}
	for _, patterns := range [][]string{nil, {"./..."}, {dir}} {
		if _, err := generator.Generate(t.Context(), generator.Config{Dir: filepath.Join(dir, "nowhere"), Patterns: patterns}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v in a folder that is not there: %v", patterns, err)
		}
	}
}

// TestWorkspace generates in a module that uses another module which only the workspace names.
func TestWorkspace(t *testing.T) {
	dir := place(t, `
-- go.work --
go 1.26.0

use (
	.
	./lib
)
-- app/x.go --
package x

import "example.com/lib"

//ratelimit:rule limit=1 per=1m
type X interface{ lib.Doer }
-- lib/go.mod --
module example.com/lib

go 1.26
-- lib/lib.go --
package lib

//ratelimit:rule limit=1 per=1m
type Doer interface{ Do(Job) error }

type Job struct{}
`)
	expectWritten(t, generator.Config{Dir: filepath.Join(dir, "app"), Patterns: []string{"."}}, "x_ratelimit.go")
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./...", "./lib/..."}}, "lib/lib_ratelimit.go")
	goIn(t, dir, "vet", "./...", "./lib/...")

	t.Setenv("GOWORK", "off")
	_, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./app"}})
	const expected = "app/x.go:3:8: could not import example.com/lib (no required module provides package example.com/lib; " +
		"to add it: go get example.com/lib)"
	if err == nil || err.Error() != expected {
		t.Errorf("without the workspace: %v, expected %s", err, expected)
	}
}

// TestWorkspaceRoot generates in a folder with a workspace and no module: for the modules of the workspace, and not for others.
func TestWorkspaceRoot(t *testing.T) {
	const mod = "module example.com/%s\n\ngo 1.26\n"
	files := map[string]string{"go.work": "go 1.26.0\n\nuse (\n\t./a\n\t./a/in\n)\n"}
	for _, module := range []string{"a", "a/in", "b"} {
		files[module+"/go.mod"], files[module+"/x.go"] = fmt.Sprintf(mod, module), plain
	}
	dir := testmodule.Dir(t)
	for name, text := range files {
		testmodule.Write(t, filepath.Join(dir, name), []byte(text))
	}
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./..."}}, "a/in/x_ratelimit.go", "a/x_ratelimit.go")
	expectWritten(t, generator.Config{Dir: filepath.Join(dir, "a"), Patterns: []string{"../..."}})
	t.Setenv("GOWORK", "off")
	expectWritten(t, generator.Config{Dir: filepath.Join(dir, "b"), Patterns: []string{"./..."}}, "x_ratelimit.go")
}

// TestNestedModule generates for the module of the folder, and not for modules nested in it.
func TestNestedModule(t *testing.T) {
	t.Parallel()
	dir := place(t, "-- x.go --\n"+plain+"-- deep/nested/x.go --\n"+plain+"-- deep/nested/go.mod --\nmodule example.com/nested\n\ngo 1.26\n")
	expectWritten(t, generator.Config{Dir: dir, Patterns: []string{"./..."}}, "x_ratelimit.go")
	nested := filepath.Join(dir, "deep", "nested")
	expectWritten(t, generator.Config{Dir: nested, Patterns: []string{"./..."}}, "x_ratelimit.go")
	src, err := os.ReadFile(filepath.Join(nested, "x_ratelimit.go"))
	if err != nil || !bytes.Contains(src, []byte(`"x.X.M"`)) {
		t.Errorf("its rules are not named after its own module: %v\n%s", err, src)
	}
}
