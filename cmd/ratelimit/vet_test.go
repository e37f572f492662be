package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leaking is a program with a limit that it loses.
const leaking = `package x

type x struct{}

func (x) M(a string) error { return nil }

func Use() error { return x{}.M("1") }
`

// runIn runs a program in dir.
func runIn(t *testing.T, dir, name string, args ...string) (status int, output string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ratelimit")
	goCommand(t, ".", "build", "-o", program, ".")
	return program
}

func TestVet(t *testing.T) {
	program := build(t)
	dir := module(t, "x.go", source, "use.go", leaking)
	if status, out := runIn(t, dir, program); status != 0 {
		t.Fatalf("generating: status %d\n%s", status, out)
	}
	const lost = "use.go:7:31: the limits of X do not reach this M on x; use what NewLimitedX returns\n"
	for _, command := range [][]string{
		{program, "vet", "./..."},
		{program, "vet"},
		{"go", "vet", "-vettool=" + program, "./..."},
	} {
		status, out := runIn(t, dir, command[0], command[1:]...)
		if status != 1 || !strings.HasSuffix(out, lost) {
			t.Errorf("%v: status %d, expected 1 and %q:\n%s", command, status, lost, out)
		}
	}
	status, out := runIn(t, dir, program, "vet", "-json", "./...")
	if status != 0 || !strings.Contains(out, `"message": "the limits of X do not reach`) {
		t.Errorf("vet -json: status %d\n%s", status, out)
	}
	write(t, dir, "use.go", strings.Replace(leaking, "x{}.M", "NewLimitedX(x{}, nil).M", 1))
	if status, out := runIn(t, dir, program, "vet", "./..."); status != 0 || out != "" {
		t.Errorf("vet without a finding: status %d\n%s", status, out)
	}
}

func TestVetFix(t *testing.T) {
	program := build(t)
	dir := module(t, "x.go", strings.NewReplacer("//ratelimit", "// ratelimit", "limit=", "limt=").Replace(source))
	for range 2 { // the misspelt word is found once the directive is one
		if status, out := runIn(t, dir, program, "vet", "-fix", "./..."); status != 0 {
			t.Errorf("vet -fix: status %d\n%s", status, out)
		}
	}
	if got := read(t, dir, "x.go"); got != source {
		t.Errorf("vet -fix made\n%s", got)
	}
}

func TestVetUsage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status, ok := vets([]string{"vet", "-h"}, &stdout, &stderr); status != done || !ok || stdout.String() != vetUsage {
		t.Errorf("vet -h: %d, %t, %q", status, ok, stdout.String())
	}
	for _, args := range [][]string{nil, {"./..."}, {"-check", "./vet"}, {"./vet"}, {"-version"}} {
		if _, ok := vets(args, &stdout, &stderr); ok {
			t.Errorf("%v was taken for a call of vet", args)
		}
	}
}
