package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const source = `package x

type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m name=x
	M(a string) error
}
`

// ratelimit runs the command in dir.
func ratelimit(t *testing.T, dir string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// expect runs the command and fails unless it exits with status.
func expect(t *testing.T, status int, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := ratelimit(t, dir, args...)
	if got != status {
		t.Fatalf("ratelimit %v: status %d, expected %d\n%s%s", args, got, status, stdout, stderr)
	}
	return stdout, stderr
}

// module makes a module with the given files, names and contents by turns. It uses this one from source.
func module(t *testing.T, files ...string) string {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "a path with spaces")
	_, requirements, _ := strings.Cut(read(t, filepath.Join(repo, "go.mod")), "\n")
	write(t, dir, "go.mod", fmt.Sprintf("module example.com/x\n%s\nrequire github.com/ratelimit-go/ratelimit v0.0.0\n"+
		"replace github.com/ratelimit-go/ratelimit => %q\ntool github.com/ratelimit-go/ratelimit/cmd/ratelimit\n", requirements, repo))
	write(t, dir, "go.sum", read(t, filepath.Join(repo, "go.sum")))
	for i := 0; i < len(files); i += 2 {
		write(t, dir, files[i], files[i+1])
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// goCommand runs the go command in dir.
func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

func TestGenerateAndCheck(t *testing.T) {
	dir := module(t, "x.go", source)
	output := filepath.Join(dir, "x_ratelimit.go")

	if _, stderr := expect(t, 1, dir, "-check"); stderr != "x_ratelimit.go: missing; run ratelimit\n" {
		t.Errorf("-check said %q", stderr)
	}
	expect(t, 0, dir)
	goCommand(t, dir, "vet", ".")
	expect(t, 0, dir, "-check", "./...")

	write(t, dir, "x.go", strings.Replace(source, "limit=1 ", "limit=2 ", 1))
	before := read(t, output)
	stdout, stderr := expect(t, 1, dir, "-check")
	if stderr != "x_ratelimit.go: stale; run ratelimit\n" {
		t.Errorf("-check said %q", stderr)
	}
	for _, line := range []string{"\n-\tratelimit.Rule{Name: \"x\", Key: \"{a}\", Limit: 1,", "\n+\tratelimit.Rule{Name: \"x\", Key: \"{a}\", Limit: 2,"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("the diff lacks %q:\n%s", line, stdout)
		}
	}
	if read(t, output) != before {
		t.Error("-check wrote the file")
	}
}

func TestUnchangedFileIsNotWritten(t *testing.T) {
	dir := module(t, "x.go", source)
	expect(t, 0, dir)
	output := filepath.Join(dir, "x_ratelimit.go")
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(output, long, long); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, dir)
	if info, err := os.Stat(output); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("the file was written again: %v, %v", info.ModTime(), err)
	}
}

func TestErrorsLeaveOutputAsItIs(t *testing.T) {
	dir := module(t, "x.go", source, "y/y.go", strings.ReplaceAll(source, "package x", "package y"))
	expect(t, 0, dir, "./...")
	before := read(t, dir, "y", "y_ratelimit.go")
	write(t, dir, "y/y.go", strings.Replace(source, "limit=1 ", "limit=5 ", 1))
	write(t, dir, "x.go", strings.Replace(source, "{a}", "{b}", 1))
	if _, stderr := expect(t, 1, dir, "./..."); !strings.HasPrefix(stderr, "x.go:4:25: unknown name b") {
		t.Errorf("unexpected errors %q", stderr)
	}
	if read(t, dir, "y", "y_ratelimit.go") != before {
		t.Error("a failed run wrote a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s is left over", e.Name())
		}
	}
}

func TestDirectivesGone(t *testing.T) {
	dir := module(t, "x.go", source, "y/y.go", strings.ReplaceAll(source, "package x", "package y"))
	write(t, dir, "hand_ratelimit.go", "package x\n") // not generated
	expect(t, 0, dir, "./...")
	write(t, dir, "x.go", "package x\n\ntype X interface{ M(a string) error }\n")
	if err := os.Remove(filepath.Join(dir, "y", "y.go")); err != nil {
		t.Fatal(err)
	}
	_, stderr := expect(t, 1, dir, "-check", "./...")
	for _, name := range []string{
		"x_ratelimit.go: stale, as its source has no directives",
		filepath.Join("y", "y_ratelimit.go") + ": stale, as its source is gone",
	} {
		if !strings.Contains(stderr, name) {
			t.Errorf("-check does not say %q: %q", name, stderr)
		}
	}
	expect(t, 0, dir, "./...")
	for _, name := range []string{"x_ratelimit.go", "y/y_ratelimit.go"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	read(t, dir, "hand_ratelimit.go")
}

func TestForeignOutput(t *testing.T) {
	dir := module(t, "a.go", strings.ReplaceAll(source, "X", "A"), "x.go", source, "x_ratelimit.go", "package x\n")
	for _, args := range [][]string{nil, {"-check"}} {
		if _, stderr := expect(t, 1, dir, args...); stderr != "x_ratelimit.go: not generated by ratelimit; rename it\n" {
			t.Errorf("%v: %q", args, stderr)
		}
	}
	if got := read(t, dir, "x_ratelimit.go"); got != "package x\n" {
		t.Errorf("it was overwritten by\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "a_ratelimit.go")); err == nil {
		t.Error("another file was written")
	}
}

func TestOutputThatIsNoFile(t *testing.T) {
	dir := module(t, "sub/x.go", source)
	output := filepath.Join(dir, "sub", "x_ratelimit.go")
	if err := os.Mkdir(output, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, stderr := expect(t, 1, dir, "./..."); !strings.HasPrefix(stderr, filepath.Join("sub", "x_ratelimit.go")+": ") {
		t.Errorf("of a folder: %q", stderr)
	}
	if err := os.Remove(output); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", output); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join("sub", "x_ratelimit.go") + ": a symbolic link to nothing\n"
	if _, stderr := expect(t, 1, dir, "./..."); stderr != want {
		t.Errorf("of a dangling link: %q, expected %q", stderr, want)
	}
}

func TestLineEnds(t *testing.T) {
	dir := module(t, "x.go", source)
	expect(t, 0, dir)
	crlf := strings.ReplaceAll(read(t, dir, "x_ratelimit.go"), "\n", "\r\n")
	write(t, dir, "x_ratelimit.go", crlf)
	expect(t, 0, dir, "-check")
	expect(t, 0, dir)
	if read(t, dir, "x_ratelimit.go") != crlf {
		t.Error("the file was written again")
	}
}

func TestDiff(t *testing.T) {
	var before []string
	for i := range 30 {
		before = append(before, fmt.Sprint("line ", i))
	}
	after := slices.Clone(before)
	after[2], after[28] = "changed", "changed, too"
	after = slices.Insert(after, 5, "new")
	want := `--- x
+++ x
@@ -1,8 +1,9 @@
 line 0
 line 1
-line 2
+changed
 line 3
 line 4
+new
 line 5
 line 6
 line 7
@@ -26,5 +27,5 @@
 line 25
 line 26
 line 27
-line 28
+changed, too
 line 29
`
	text := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	if got := diff("x", text(before), text(after)); got != want {
		t.Errorf("diff printed\n%s, expected\n%s", got, want)
	}
}

func TestProgramsAreNamedAfterTheirModule(t *testing.T) {
	for path, name := range map[string]string{
		"example.com/teams/billing": "billing", "example.com/billing/v2": "billing", "billing": "billing", "v2": "v2",
	} {
		t.Run(path, func(t *testing.T) {
			dir := module(t, "x.go", strings.NewReplacer("package x", "package main", " name=x", "").Replace(source))
			write(t, dir, "go.mod", strings.Replace(read(t, dir, "go.mod"), "module example.com/x", "module "+path, 1))
			if stdout, _ := expect(t, 0, dir, "-list"); !strings.Contains(stdout, "  "+name+".X.M  "+name+".X.M  ") {
				t.Errorf("its rule is not called %s.X.M:\n%s", name, stdout)
			}
		})
	}
}

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
	expect(t, 0, dir, "-check", ".", "./vendor2", "./vendor2/...")
	for _, pattern := range []string{"./nowhere", "nowhere.go", "example.com/nowhere"} {
		if _, stderr := expect(t, 1, dir, pattern); !strings.Contains(stderr, "nowhere") || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: %q", pattern, stderr)
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
	if _, stderr := expect(t, 0, dir); !strings.Contains(stderr, "x.go: note: ") {
		t.Errorf("no note on the file that was left out: %q", stderr)
	}
	expect(t, 0, dir, "-tags=special")
	if out := read(t, dir, "x_ratelimit.go"); !strings.Contains(out, "\n//go:build special\n") {
		t.Errorf("the constraint is lost:\n%s", out)
	}
	expect(t, 0, dir, "-check") // what was generated under the tag stays
	goCommand(t, dir, "vet", "-tags=special", ".")
}

func TestGoGenerate(t *testing.T) {
	dir := module(t, "x.go", strings.Replace(source, "\n", "\n\n//go:generate go tool ratelimit $GOFILE\n", 1), "use.go", "package x\n\nvar _ = NewLimitedX\n")
	goCommand(t, dir, "generate", "./...")
	goCommand(t, dir, "vet", "./...")
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-nonsense"}, {"-json"}, {"-markdown"}, {"-list", "-json", "-markdown"}, {"-check", "-list"}, {"./...", "-check"},
		{"-warn=off"}, {"-warn="}, {"-warn"},
	} {
		if stdout, stderr := expect(t, 2, dir, args...); stdout != "" || stderr == "" {
			t.Errorf("%v: printed %q and %q", args, stdout, stderr)
		}
	}
	if stdout, stderr := expect(t, 0, dir, "-h"); stderr != "" || !strings.Contains(stdout, "examples:") || !strings.Contains(stdout, "-check") {
		t.Errorf("-h printed %q and %q", stdout, stderr)
	}
	if stdout, _ := expect(t, 0, dir, "-version"); !strings.HasPrefix(stdout, "ratelimit ") {
		t.Errorf("-version printed %q", stdout)
	}
}
