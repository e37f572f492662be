package readme

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// workspace has a module for each page, in the folder of its name. The path of the module ends in /shop. On the page, it is shop.
type workspace struct {
	dir   string
	files map[string]source // such as vet/app/main.go
}

// source is where a page shows a file.
type source struct {
	page string
	line int
}

var goLine = regexp.MustCompile(`(?m)^go .*\n`)

// newWorkspace writes the Go blocks of README.md and of the pages of docs, and the longer tests of pages, which are in testdata. It returns the
// pages that have any. Their modules require what examples/shop requires.
func newWorkspace(t *testing.T) (workspace, []page) {
	paths, err := filepath.Glob(filepath.Join(top, "docs/*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	w := workspace{dir: testmodule.Dir(t), files: map[string]source{}}
	if err := os.CopyFS(w.dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	like := filepath.Join(top, "examples/shop")
	work := goLine.FindString(read(t, filepath.Join(like, "go.mod")))
	var pages []page
	for _, path := range append(paths, readme) {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		p := page{file: filepath.ToSlash(path), name: name, dir: filepath.Join(w.dir, name), blocks: blocksOf(read(t, path))}
		if w.add(t, p) {
			testmodule.InitLike(t, p.dir, like, "pages/"+name+"/shop")
			work += "use ./" + name + "\n"
			pages = append(pages, p)
		}
	}
	testmodule.Write(t, filepath.Join(w.dir, "go.work"), work)
	return w, pages
}

func blocksOf(text string) []block {
	var blocks []block
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		blocks = append(blocks, block{text[at[2]:at[3]], text[at[4]:at[5]], 1 + strings.Count(text[:at[4]], "\n")})
	}
	return blocks
}

// ownImport matches the import of a package that the page shows: "shop", or "shop/auth".
var ownImport = regexp.MustCompile(`(?m)^((?:import |\t)(?:[\w.]+ )?")(shop(?:/[^"]*)?"$)`)

// add writes the Go blocks of a page, whose first lines name their files. It reports whether there are any. A block of csv is calls.csv.
func (w workspace) add(t *testing.T, p page) (found bool) {
	for _, b := range p.blocks {
		if b.language == "csv" {
			testmodule.Write(t, filepath.Join(w.dir, p.name, "calls.csv"), b.text)
		}
		if b.language != "go" {
			continue
		}
		line, _, _ := strings.Cut(b.text, "\n")
		name, ok := strings.CutPrefix(line, "// ")
		if !ok || !strings.HasSuffix(name, ".go") {
			t.Fatalf("%s:%d: the first line of a Go block is %q; expected the name of its file", p.file, b.line, line)
		}
		name = p.name + "/" + name
		if other, twice := w.files[name]; twice {
			t.Fatalf("%s:%d: line %d names the same file", p.file, b.line, other.line)
		}
		w.files[name] = source{p.file, b.line}
		testmodule.Write(t, filepath.Join(w.dir, name), ownImport.ReplaceAllString(b.text, "${1}pages/"+p.name+"/$2"))
		found = true
	}
	return found
}

func (w workspace) generate(t *testing.T, command string) {
	if _, err := run(w.dir, command, "work"); err != nil {
		t.Fatal(w.locate(err.Error()))
	}
}

// check vets, tests and formats all packages.
func (w workspace) check(t *testing.T) {
	for _, args := range [][]string{{"vet", "work"}, {"test", "-vet=off", "-fullpath", "work"}} {
		if _, err := run(w.dir, "go", args...); err != nil {
			t.Error(w.locate(untold.ReplaceAllString(err.Error(), "")))
		}
	}
	if unformatted, err := run(w.dir, "gofmt", "-l", "."); err != nil {
		t.Error(w.locate(err.Error()))
	} else if unformatted != "" {
		t.Errorf("not as gofmt leaves it: %s", w.locate(unformatted))
	}
}

// untold matches what go test says of packages without a failure.
var untold = regexp.MustCompile(`(?m)^(ok  |\?   )\t.*\n`)

var position = regexp.MustCompile(`([\w./-]+\.go)(?::(\d+))?`)

// locate replaces the names of files in the output of a command by the places where pages show them.
func (w workspace) locate(output string) string {
	return position.ReplaceAllStringFunc(output, func(at string) string {
		part := position.FindStringSubmatch(at)
		from, ok := w.files[strings.TrimPrefix(strings.TrimPrefix(part[1], w.dir+"/"), "./")]
		if !ok {
			return at
		}
		line, _ := strconv.Atoi(cmp.Or(part[2], "1"))
		return fmt.Sprintf("%s:%d", from.page, from.line+line-1)
	})
}

// run returns the output of a command. If the command fails, the error has the output.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// TestLocate moves the names of files to the pages. What is not on a page stays.
func TestLocate(t *testing.T) {
	w := workspace{dir: "/tmp/001", files: map[string]source{"vet/app/main.go": {"docs/vet.md", 51}}}
	for output, want := range map[string]string{
		"vet/app/main.go:1:2: undefined: x":      "docs/vet.md:51:2: undefined: x",
		"vet: ./vet/app/main.go:16:3: assigned":  "vet: docs/vet.md:66:3: assigned",
		"    /tmp/001/vet/app/main.go:2: failed": "    docs/vet.md:52: failed",
		"vet/app/main.go\n":                      "docs/vet.md:51\n",
		"keys/row1/desk.go:3: x":                 "keys/row1/desk.go:3: x",
	} {
		if got := w.locate(output); got != want {
			t.Errorf("got %q; expected %q", got, want)
		}
	}
}
