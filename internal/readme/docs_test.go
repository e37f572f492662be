package readme

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// TestDocs makes a package of the Go blocks of each page in docs, whose first lines name their files; generates and vets it; and
// compares what the command prints in it with the console blocks.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(top, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	command := filepath.Join(t.TempDir(), "ratelimit")
	run(t, top, "go", "build", "-o", command, "./cmd/ratelimit")
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			found := fence.FindAllStringSubmatch(read(t, "docs/"+filepath.Base(page)), -1)
			if len(found) == 0 {
				return // a page without code
			}
			dir := packageOf(t, found)
			run(t, dir, command, ".")
			run(t, dir, "go", "vet", ".")
			if got := run(t, dir, "gofmt", "-l", "."); got != "" {
				t.Errorf("not as gofmt leaves it: %s", got)
			}
			for _, m := range found {
				if m[1] == "console" {
					checkConsole(t, dir, command, m[2])
				}
			}
		})
	}
}

// packageOf writes the Go blocks into a module.
func packageOf(t *testing.T, found [][]string) (dir string) {
	dir = testmodule.Dir(t)
	for _, m := range found {
		if m[1] == "go" {
			name, _, _ := strings.Cut(m[2], "\n")
			testmodule.Write(t, filepath.Join(dir, strings.TrimPrefix(name, "// ")), m[2])
		}
	}
	testmodule.Init(t, dir, top, "shop")
	return dir
}

func checkConsole(t *testing.T, dir, command, block string) {
	line, want, _ := strings.Cut(block, "\n")
	args, ok := strings.CutPrefix(line, "$ go tool ratelimit ")
	if !ok {
		t.Fatalf("cannot run %s", line)
	}
	cmd := exec.Command(command, strings.Fields(args)...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // its status may say that something was found
	if got := string(out); got != want {
		t.Errorf("%s printed\n%sbut the page has\n%s", line, got, want)
	}
}
