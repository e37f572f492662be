package generator_test

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stages are the packages of the pipeline. None of them may import another.
var stages = []string{"load", "collect", "compile", "doubt", "emit"}

// TestImportDirections checks that packages import each other only as doc.go says.
func TestImportDirections(t *testing.T) {
	t.Parallel()
	const module = "github.com/ratelimit-go/ratelimit/"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./internal/...", "../annotations").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		stage, inside := strings.CutPrefix(path, module+"generator/internal/")
		for _, imported := range strings.Fields(imports) {
			name, ours := strings.CutPrefix(imported, module+"generator/internal/")
			switch {
			case inside && ours && stage != "pipeline" && slices.Contains(stages, name):
				t.Errorf("%s imports %s, which is a stage of the pipeline", path, name)
			case path == module+"annotations" && strings.HasPrefix(imported, module) && imported != module+"internal/period":
				t.Errorf("annotations imports %s; it knows the language alone", imported)
			case inside && strings.Contains(imported, "/redis"):
				t.Errorf("%s imports %s; the generator knows no store", path, imported)
			}
		}
		if inside && slices.Contains(stages, stage) {
			seen++
		}
	}
	if seen != len(stages) {
		t.Errorf("found %d of the stages %v", seen, stages)
	}
}

// TestWhereIsThere checks that the files and folders of the table in doc.go exist.
func TestWhereIsThere(t *testing.T) {
	doc := string(readFile(t, "doc.go"))
	_, table, _ := strings.Cut(doc, "# Where do I change X")
	found := regexp.MustCompile(`(?:internal/)?[a-z_]+/[a-z_]+\.go|internal/[a-z]+|\b[a-z_]+\.go`).FindAllString(table, -1)
	if len(found) < 20 {
		t.Fatalf("the table has %d files: %v", len(found), found)
	}
	folder := ""
	for _, name := range found {
		if i := strings.LastIndex(name, "/"); i >= 0 && strings.HasSuffix(name, ".go") {
			folder = name[:i+1]
		} else if strings.HasSuffix(name, ".go") && exists(folder+name) {
			continue
		}
		if !exists(name) && !exists("../"+name) && !exists("../"+folder+name) {
			t.Errorf("there is no %s", name)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestNoGoroutines checks that what make test runs without the race detector starts no goroutine.
func TestNoGoroutines(t *testing.T) {
	starts := regexp.MustCompile(`(?m)^\t+go \w|errgroup|\.Go\(`)
	for _, top := range []string{".", "../annotations", "../cmd/ratelimit", "../internal/engine", "../internal/simulate", "../runtime/redisstore/lua"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == "vet" || d.Name() == "testdata" { // the checks of vet run side by side
				return cmp.Or(err, fs.SkipDir)
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			if start := starts.Find(readFile(t, path)); start != nil {
				t.Errorf("%s has %q: take its package out of SEQUENTIAL in the Makefile", path, start)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
