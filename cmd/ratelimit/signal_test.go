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

// TestSignals ends the command while it waits for a go command that never answers.
func TestSignals(t *testing.T) {
	program, dir, bin := build(t), module(t, "x.go", source), t.TempDir()
	asked := filepath.Join(bin, "asked")
	if err := syscall.Mkfifo(asked, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(bin, "go")
	testmodule.Write(t, fake, "#!/bin/sh\necho >'"+asked+"'\nexec sleep 1000\n")
	if err := os.Chmod(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
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
