package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestVetPrograms checks programs of common layouts, each in two variants: wired, where vet must find nothing, and forgotten, where one
// wrapper is missing. Each archive has the files of both, those of one variant below its name, and in "findings" what vet must print about
// the variant forgotten. An import of app/x is one of the folder x of the variant.
func TestVetPrograms(t *testing.T) {
	paths, err := filepath.Glob("testdata/programs/*.txtar")
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	program, dir := build(t), module(t)
	var want strings.Builder
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for _, f := range archive.Files {
			if f.Name == "findings" {
				for line := range strings.Lines(string(f.Data)) {
					want.WriteString(name + "/forgotten/" + line)
				}
				continue
			}
			for _, variant := range []string{"wired", "forgotten"} {
				first, rest, _ := strings.Cut(f.Name, "/")
				if first != "wired" && first != "forgotten" {
					first, rest = variant, f.Name
				}
				if first == variant {
					text := strings.ReplaceAll(string(f.Data), `"app/`, `"example.com/x/`+name+`/`+variant+`/`)
					write(t, dir, filepath.Join(name, variant, rest), text)
				}
			}
		}
	}
	if status, out := runIn(t, dir, program, "./..."); status != 0 {
		t.Fatalf("generating: status %d\n%s", status, out)
	}
	goCommand(t, dir, "vet", "-trimpath", "./...") // they compile; the build cache knows that, if nothing has changed
	if status, out := runIn(t, dir, program, "vet", "./..."); status != failed || out != want.String() {
		t.Errorf("status %d, found\n%s\nexpected\n%s", status, out, want.String())
	}
}
