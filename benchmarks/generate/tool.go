package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The other generators.
const (
	moqModule     = "github.com/matryer/moq@v0.8.1"
	mockgenModule = "go.uber.org/mock/mockgen@v0.6.0"
)

// tool is a generator.
type tool struct {
	name, program string
	// args returns its arguments for interfaces of the package in the current directory.
	args func(c benchmark) []string
}

// install builds the tools below dir. The first one is ratelimit.
func install(dir string) ([]tool, error) {
	bin := filepath.Join(dir, "bin")
	ours, err := build(bin)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"install", moqModule},
		{"install", mockgenModule},
	} {
		if err := goCommand("", []string{"GOBIN=" + bin}, args...); err != nil {
			return nil, err
		}
	}
	return []tool{
		ours,
		{"moq", filepath.Join(bin, "moq"), func(c benchmark) []string {
			return append([]string{"-out", "x_moq.go", "."}, c.interfaces...)
		}},
		{"mockgen", filepath.Join(bin, "mockgen"), func(c benchmark) []string {
			return []string{"-destination", filepath.Join("mocks", "x.go"), ".", strings.Join(c.interfaces, ",")}
		}},
	}, nil
}

// build builds ratelimit in bin, from the module that contains this one.
func build(bin string) (tool, error) {
	program := filepath.Join(bin, "ratelimit")
	err := goCommand("", nil, "build", "-C", "..", "-o", program, "./cmd/ratelimit")
	return tool{"ratelimit", program, func(c benchmark) []string { return c.args }}, err
}

// goCommand runs the go command in dir.
func goCommand(dir string, env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
