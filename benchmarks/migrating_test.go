package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestBefore compiles the code in docs/migrating.md that is replaced. This module requires the limiters which that code uses. The files are in an
// overlay, each in a package of its own.
func TestBefore(t *testing.T) {
	page, err := os.ReadFile("../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go before\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("the page has no code to replace")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), map[string]string{}
	args := []string{"build", "-overlay=" + filepath.Join(dir, "overlay.json")}
	for i, block := range blocks {
		name := fmt.Sprintf("before%d", i)
		write(t, filepath.Join(dir, name+".go"), block[1])
		files[filepath.Join(here, name, "before.go")] = filepath.Join(dir, name+".go")
		args = append(args, "./"+name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not as gofmt leaves it: %s, error %v", out, err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
