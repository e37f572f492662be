package readme

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateLicences = flag.Bool("update-licences", false, "rewrite docs/licences.md")

const licencesHead = `<!-- Written by go test ./internal/readme -run Licences -update-licences. -->

# Licences

If you must know what you link: every module that code of this repository imports, and its licence. This project's is
[Apache 2.0](../LICENSE).

A program with generated wrappers links what "runtime" uses, and of that only the packages that it imports: the Redis client comes with
` + "`redisstore`" + `. The rest is for tools, tests, and modules of their own.

| module | licence | used by |
|---|---|---|
`

// TestLicences expects docs/licences.md to list exactly the modules that code here imports.
func TestLicences(t *testing.T) {
	users, folders := map[string][]string{}, map[string]string{}
	note := func(user, dir string, args ...string) {
		for path, folder := range dependencies(t, dir, args...) {
			if folders[path] = folder; !slices.Contains(users[path], user) {
				users[path] = append(users[path], user)
			}
		}
	}
	note("runtime", ".", "./runtime/...")
	note("generator and commands", ".", "./generator/...", "./cmd/...", "./annotations/...")
	note("tests", ".", "-test", "./...")
	for _, module := range nested(t) {
		note(module, module, "-test", "./...")
	}
	text := licencesHead
	for _, path := range slices.Sorted(maps.Keys(users)) {
		text += fmt.Sprintf("| `%s` | %s | %s |\n", path, licence(t, path, folders[path]), strings.Join(users[path], ", "))
	}
	page := filepath.Join(top, "docs", "licences.md")
	if *updateLicences {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, page) != text {
		t.Errorf("docs/licences.md is not as it should be; run: go test ./internal/readme -run Licences -update-licences\n%s", text)
	}
}

// nested returns the folders of all modules except the one at the root.
func nested(t *testing.T) []string {
	var found []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if dir := filepath.Dir(path); err == nil && d.Name() == "go.mod" && dir != top {
			rel, _ := filepath.Rel(top, dir)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// dependencies returns the modules of other projects that packages import, and the folder of each.
func dependencies(t *testing.T, dir string, args ...string) map[string]string {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, args...)...)
	cmd.Dir = filepath.Join(top, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v in %s: %v\n%s", cmd.Args, dir, err, stderr.String())
	}
	found := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			Module *struct {
				Path, Dir string
				Main      bool
			}
		}
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if m := pkg.Module; m != nil && !m.Main && !strings.HasPrefix(m.Path, "github.com/ratelimit-go/ratelimit") {
			found[m.Path] = m.Dir
		}
	}
}

// licences maps SPDX names to words in the text of the licence.
var licences = []struct {
	name  string
	words []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"MPL-2.0", []string{"Mozilla Public License", "2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"MIT", []string{"Permission is hereby granted, free of charge"}},
}

// licence returns the names of the licences of the module in a folder.
func licence(t *testing.T, path, dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "LICEN[CS]E*"))
	text := ""
	for _, file := range files {
		text += strings.Join(strings.Fields(read(t, file)), " ")
	}
	var names []string
	for _, l := range licences {
		if !slices.ContainsFunc(l.words, func(word string) bool { return !strings.Contains(text, word) }) {
			names = append(names, l.name)
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: no licence that this test knows, in %q", path, files)
	}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { // as its text is part of the longer one
		return name == "BSD-2-Clause" && slices.Contains(names, "BSD-3-Clause")
	}), " and ")
}
