package forgotten

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"os/exec"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// listed is what go list says about a package.
type listed struct {
	ImportPath, Name, Dir      string
	GoFiles, CgoFiles, Imports []string
	DepOnly                    bool // no pattern names it
	Module                     *struct{ Main bool }

	files []*ast.File // set by parse
}

// list returns packages and their dependencies by path. An error inside a package is no error, as go vet reports it.
func list(args []string) (map[string]*listed, error) {
	const fields = "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,Imports,DepOnly,Module"
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", fields}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	all := map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		pkg := new(listed)
		if err := d.Decode(pkg); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("the output of go list: %w", err)
		}
		all[pkg.ImportPath] = pkg
	}
}

// ofPrograms returns the main packages that patterns name, and the packages that they import, directly or not.
func ofPrograms(all map[string]*listed) (found []*listed) {
	seen := map[*listed]bool{}
	var visit func(*listed)
	visit = func(pkg *listed) {
		if pkg == nil || seen[pkg] {
			return
		}
		seen[pkg] = true
		found = append(found, pkg)
		for _, path := range pkg.Imports {
			visit(all[path])
		}
	}
	for _, pkg := range all {
		if pkg.Name == "main" && !pkg.DepOnly {
			visit(pkg)
		}
	}
	return found
}

// declares reports whether p is a package of the main module with generated files. It may be nil.
func (p *listed) declares() bool {
	return p != nil && p.Module != nil && p.Module.Main && slices.ContainsFunc(p.GoFiles, func(name string) bool {
		_, generated := source.SourceOf(name)
		return generated
	})
}
