package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
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
	status = run(t.Context(), args, &out, &errs)
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

// module creates a module that requires this one, replaced by its source. The list alternates between file names and contents.
func module(t *testing.T, files ...string) string {
	t.Helper()
	dir := filepath.Join(testmodule.Dir(t), "a path with spaces")
	testmodule.Init(t, dir, "../..", "example.com/x", "tool github.com/ratelimit-go/ratelimit/cmd/ratelimit")
	for i := 0; i < len(files); i += 2 {
		write(t, dir, files[i], files[i+1])
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	testmodule.Write(t, filepath.Join(dir, name), text)
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

// TestVersionAnywhere runs -version in a directory that was removed.
func TestVersionAnywhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"-version"}, &out, &errs); status != 0 || !strings.HasPrefix(out.String(), "ratelimit ") {
		t.Errorf("status %d, printed %q and %q", status, &out, &errs)
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

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-nonsense"}, {"-markdown"}, {"help", "nonsense"}, {"-list", "-json", "-markdown"}, {"-check", "-list"},
		{"-warn=off"}, {"-warn="}, {"-warn"},
	} {
		if stdout, stderr := expect(t, 2, dir, args...); stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: printed %q and %q", args, stdout, stderr)
		}
	}
	if _, stderr := expect(t, 2, dir, "./...", "-check"); stderr != `ratelimit: found "-check" among the packages; flags come before packages; see ratelimit -h`+"\n" {
		t.Errorf("printed %q", stderr)
	}
	for _, arg := range []string{"-h", "--help", "help"} {
		stdout, stderr := expect(t, 0, dir, arg)
		for _, part := range []string{"examples:", "-check", "exit status:\n  0 ", "\n  1 ", "\n  2 "} {
			if stderr != "" || !strings.Contains(stdout, part) {
				t.Errorf("%s printed %q and %q, expected %q in it", arg, stdout, stderr, part)
			}
		}
	}
	if stdout, _ := expect(t, 0, dir, "help", "rule"); !strings.Contains(stdout, "\nlimit ") || strings.Contains(stdout, "prefix") {
		t.Errorf("help rule printed %q", stdout)
	}
	for command, want := range map[string]string{"vet": vetUsage, "simulate": simulateUsage, "version": usage} {
		for _, args := range [][]string{{"help", command}, {"help", command, "./..."}} {
			if stdout, stderr := expect(t, 0, dir, args...); !strings.HasPrefix(stdout, want) || stderr != "" {
				t.Errorf("%v printed %q and %q", args, stdout, stderr)
			}
		}
	}
	for _, arg := range []string{"-version", "version"} {
		if stdout, _ := expect(t, 0, dir, arg); !strings.HasPrefix(stdout, "ratelimit ") {
			t.Errorf("%s printed %q", arg, stdout)
		}
	}
}

func TestInterrupted(t *testing.T) {
	dir := module(t, "x.go", source)
	t.Chdir(dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	const want = "ratelimit: interrupted; nothing is written\n"
	if status := run(ctx, nil, &stdout, &stderr); status != 1 || stderr.String() != want {
		t.Errorf("status %d, %q", status, stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "x_ratelimit.go")); err == nil {
		t.Error("the file was written")
	}
}

func TestNoGoCommand(t *testing.T) {
	dir := module(t, "x.go", source)
	t.Setenv("PATH", t.TempDir())
	const want = "there is no go command in PATH, which is needed to find packages; install Go, or add its bin folder to PATH\n"
	for _, args := range [][]string{nil, {"example.com/x"}} {
		if _, stderr := expect(t, 1, dir, args...); stderr != want {
			t.Errorf("%v: %q, expected %q", args, stderr, want)
		}
	}
}
