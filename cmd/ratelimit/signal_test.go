//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestSignals sends a signal while the command waits for a go command that never answers.
func TestSignals(t *testing.T) {
	program, dir := build(t), module(t, "x.go", source)
	asked := filepath.Join(t.TempDir(), "asked")
	if err := syscall.Mkfifo(asked, 0o600); err != nil {
		t.Fatal(err)
	}
	fakeGo(t, "echo >'"+asked+"'\nexec sleep 1000")
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.Command(program)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadFile(asked); err != nil { // which waits for the writer
			t.Error(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		err := cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != failed || stderr.String() != "ratelimit: interrupted; nothing is written\n" {
			t.Errorf("%v: %v, %q", signal, err, stderr.String())
		}
	}
}

// TestSilentGoCommand runs with a go command that fails without output.
func TestSilentGoCommand(t *testing.T) {
	dir := module(t, "x.go", source)
	for script, want := range map[string]string{"exit 3": "exit status 3\n", "kill -9 $$": "signal: killed\n"} {
		fakeGo(t, script)
		if _, stderr := expect(t, 1, dir); stderr != want {
			t.Errorf("%s: %q, expected %q", script, stderr, want)
		}
	}
}

// fakeGo puts a shell script in place of the go command.
func fakeGo(t *testing.T, script string) {
	bin := t.TempDir()
	name := filepath.Join(bin, "go")
	testmodule.Write(t, name, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
}
