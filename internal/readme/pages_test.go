package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../.."

// fence matches a block of code with its language. It does not match "go before": such a block uses another limiter, and a test of the
// module benchmarks compiles it.
var fence = regexp.MustCompile("(?ms)^```([a-z]+(?: generated)?)\n(.*?)^```$")

// page is a page with Go blocks.
type page struct {
	file   string // such as ../../docs/vet.md
	name   string // vet
	dir    string // of its module
	blocks []block
}

// block is a block of code of a page.
type block struct {
	language, text string
	line           int // of the page, on which the text begins
}

// TestPages generates, vets and tests the Go blocks of all pages together. For each page, it runs the commands of the console blocks in the
// page's module, and compares their output with the rest of these blocks. It looks for blocks "go generated" in the generated files.
func TestPages(t *testing.T) {
	bin := t.TempDir()
	if _, err := run(top, "go", "build", "-o", bin, "./cmd/ratelimit", "./cmd/ratelimitctl"); err != nil {
		t.Fatal(err)
	}
	w, pages := newWorkspace(t)
	examples := writeExamples(t, filepath.Join(w.dir, "keys"), read(t, filepath.Join(top, "docs/keys.md")))
	w.generate(t, filepath.Join(bin, "ratelimit"))
	for _, e := range examples {
		e.check(t)
	}
	w.check(t)
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, b := range p.blocks {
				switch b.language {
				case "console":
					checkConsole(t, p, bin, b)
				case "go generated":
					checkGenerated(t, p, b)
				}
			}
			if p.name == "production" {
				checkProduction(t, p, bin)
			}
		})
	}
}

// checkConsole runs the command of a console block, and compares its output with the rest of the block.
func checkConsole(t *testing.T, p page, bin string, b block) {
	line, want, _ := strings.Cut(b.text, "\n")
	name, args := "go", strings.TrimPrefix(line, "$ go ")
	if tool, ok := strings.CutPrefix(args, "tool ratelimit "); ok {
		name, args = filepath.Join(bin, "ratelimit"), tool
	} else if !strings.HasPrefix(args, "run ") {
		return // a block for a reader's own module
	}
	cmd := exec.Command(name, strings.Fields(args)...)
	cmd.Dir = p.dir
	out, _ := cmd.CombinedOutput() // the status may be 1 because of findings
	if got := string(out); got != want {
		t.Errorf("%s:%d: %s printed\n%sbut the page has\n%s", p.file, b.line, line, got, want)
	}
}

// checkGenerated expects the block in a file that was generated from the page.
func checkGenerated(t *testing.T, p page, b block) {
	files, err := filepath.Glob(filepath.Join(p.dir, "*_ratelimit.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(file string) bool { return strings.Contains(read(t, file), b.text) }) {
		t.Errorf("%s:%d: no generated file has\n%s", p.file, b.line, b.text)
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
