package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

const top = "../.."

// fence matches a block of code with its language. It does not match "go before": such a block uses another limiter, and a test of the
// module benchmarks compiles it.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

var directive = regexp.MustCompile(`(?m)^\s*//ratelimit:`)

// TestPages creates a module from the Go blocks of each page, whose first lines name their files. It generates, vets and tests the
// module, runs the commands of the console blocks in it, and compares their output with the rest of these blocks.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(top, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	command := filepath.Join(t.TempDir(), "ratelimit")
	run(t, top, "go", "build", "-o", command, "./cmd/ratelimit")
	for _, page := range append(pages, filepath.Join(top, "README.md")) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			found := fence.FindAllStringSubmatch(read(t, page), -1)
			dir, annotated := packageOf(t, found)
			if dir == "" {
				return // a page without Go
			}
			if filepath.Base(page) == "recipes.md" { // its longer tests are not on the page
				if err := os.CopyFS(dir, os.DirFS("testdata/recipes")); err != nil {
					t.Fatal(err)
				}
			}
			var examples []example
			if filepath.Base(page) == "keys.md" {
				examples = writeExamples(t, dir, read(t, page))
			}
			if annotated {
				run(t, dir, command, "./...")
			}
			for _, e := range examples {
				e.check(t)
			}
			run(t, dir, "go", "vet", "./...")
			run(t, dir, "go", "test", "./...")
			if got := run(t, dir, "gofmt", "-l", "."); got != "" {
				t.Errorf("not as gofmt leaves it: %s", got)
			}
			for _, m := range found {
				if m[1] == "console" {
					checkConsole(t, dir, command, m[2])
				}
			}
			if filepath.Base(page) == "production.md" {
				checkProduction(t, dir, found)
			}
		})
	}
}

// packageOf writes the Go blocks into a module. It requires what examples/shop does if a block uses a module of contrib. It returns the folder of the module, or "" if there are no Go blocks, and whether there
// is a directive.
func packageOf(t *testing.T, found [][]string) (dir string, annotated bool) {
	for _, m := range found {
		if m[1] != "go" {
			continue
		}
		if dir == "" {
			dir = testmodule.Dir(t)
			if slices.ContainsFunc(found, func(m []string) bool { return m[1] == "go" && strings.Contains(m[2], "/contrib/") }) {
				testmodule.InitLike(t, dir, filepath.Join(top, "examples/shop"), "shop")
			} else {
				testmodule.Init(t, dir, top, "shop")
			}
		}
		line, _, _ := strings.Cut(m[2], "\n")
		name, ok := strings.CutPrefix(line, "// ")
		if !ok || !strings.HasSuffix(name, ".go") {
			t.Fatalf("the first line of a Go block is %q; expected the name of its file", line)
		}
		testmodule.Write(t, filepath.Join(dir, name), m[2])
		annotated = annotated || directive.MatchString(m[2])
	}
	return dir, annotated
}

// checkConsole runs the command of a console block, and compares its output with the rest of the block.
func checkConsole(t *testing.T, dir, command, block string) {
	line, want, _ := strings.Cut(block, "\n")
	name, args := "go", "run ."
	if line != "$ go run ." {
		var ok bool
		name = command
		if args, ok = strings.CutPrefix(line, "$ go tool ratelimit "); !ok {
			return // a block for a reader's own module
		}
	}
	cmd := exec.Command(name, strings.Fields(args)...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // the status may be 1 because of findings
	if got := string(out); got != want {
		t.Errorf("%s printed\n%sbut the page has\n%s", line, got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
