package readme

import (
	"github.com/ratelimit-go/ratelimit/annotations"

	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

const top = "../.."

// fence is a block of code, with its language.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

func blocks(t *testing.T, language string) []string {
	t.Helper()
	var found []string
	for _, m := range fence.FindAllStringSubmatch(read(t, "README.md"), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("README.md has no block of %s", language)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGoBlocks does what a reader would: it puts the blocks into files of a module of its own, generates, and runs the program.
func TestGoBlocks(t *testing.T) {
	dir := t.TempDir()
	for i, block := range blocks(t, "go") {
		if !strings.HasPrefix(block, "package ") {
			block = "package main\n\n" + block
		}
		testmodule.Write(t, filepath.Join(dir, fmt.Sprintf("block%d.go", i+1)), block)
	}
	testmodule.Init(t, dir, top, "readme")

	run(t, dir, "go", "run", "github.com/ratelimit-go/ratelimit/cmd/ratelimit", ".")
	run(t, dir, "go", "vet", ".")
	if got := run(t, dir, "gofmt", "-l", "."); got != "" {
		t.Errorf("not as gofmt leaves it: %s", got)
	}
	want := regexp.MustCompile(`^<nil>\nreadme\.Sender\.SendCode: One code a minute.*retry after 59\.`)
	if got := run(t, dir, "go", "run", "."); !want.MatchString(got) {
		t.Errorf("the program printed:\n%s", got)
	}
}

// run returns the standard output of a command.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = string(exit.Stderr)
		}
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr)
	}
	return string(out)
}

func TestDemoIsQuotedAsItIs(t *testing.T) {
	printed := read(t, "examples/sms/testdata/demo.txt")
	quoted := 0
	for _, block := range blocks(t, "console") {
		block, ok := strings.CutPrefix(block, "$ make demo\n")
		if !ok {
			continue
		}
		for _, part := range strings.Split(block, "…\n") {
			quoted++
			if !strings.Contains(printed, part) {
				t.Errorf("the demonstration does not print this:\n%s", part)
			}
		}
	}
	if quoted == 0 {
		t.Error("README.md does not quote the demonstration")
	}
}

// TestArgumentsAreListed takes the words from the table of the language.
func TestArgumentsAreListed(t *testing.T) {
	readme := read(t, "README.md")
	for _, arg := range annotations.LookUp("rule").Args {
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + arg.Name + "`[^|]*\\|")
		if !row.MatchString(readme) {
			t.Errorf("no table of README.md has the argument %s", arg.Name)
		}
	}
}
