// Package testmodule creates modules for the tests of the generator. They use the source of this module, and the same versions of its
// dependencies, so that nothing has to be downloaded.
package testmodule

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ReuseBuilds lets the go commands that a test binary runs find in the build cache what was built and vetted from the same files in another
// temporary folder: with -trimpath, the folder of a package does not count. The cache has findings of vet, too, with the paths of that other folder.
func ReuseBuilds() { _ = os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath")) }

// Dir returns a temporary folder. Its path has no symbolic links, as the go command prints it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Init creates a module with this path in dir. The root of this repository is repo. The go.mod file gets the lines in more.
func Init(t testing.TB, dir, repo, path string, more ...string) {
	t.Helper()
	root, err := filepath.Abs(repo)
	if err != nil {
		t.Fatal(err)
	}
	line, requirements, _ := strings.Cut(readFile(t, root, "go.mod"), "\n")
	own := strings.TrimPrefix(line, "module ")
	Write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module %s\n%s\nrequire %s v0.0.0\nreplace %[3]s => %q\n%s\n",
		path, requirements, own, root, strings.Join(more, "\n")))
	Write(t, filepath.Join(dir, "go.sum"), readFile(t, root, "go.sum"))
}

// InitLike creates a module with this path in dir. It requires and replaces what the module in the folder like does.
func InitLike(t testing.TB, dir, like, path string) {
	t.Helper()
	root, err := filepath.Abs(like)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(readFile(t, root, "go.mod"), "\n")
	rest = relative.ReplaceAllStringFunc(rest, func(arrow string) string {
		return fmt.Sprintf("=> %q", filepath.Join(root, strings.TrimPrefix(arrow, "=> ")))
	})
	Write(t, filepath.Join(dir, "go.mod"), "module "+path+"\n"+rest)
	Write(t, filepath.Join(dir, "go.sum"), readFile(t, root, "go.sum"))
}

// relative matches the folder of a replace directive.
var relative = regexp.MustCompile(`=> \.\.\S*`)

func readFile(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write writes a file, and creates its folder.
func Write[Text string | []byte](t testing.TB, path string, text Text) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
