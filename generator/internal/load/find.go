package load

import (
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// folder is a directory that was searched for directives.
type folder struct {
	path      string
	annotated []string // paths of files with a directive or a comment that looks like one
	outputs   []string // paths of generated files
	tests     bool     // a test file has directives
}

// search reads the Go files of a directory. It only looks for directives, and does not parse the files.
func search(dir string) (*folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{path: dir}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || name[0] == '_' || name[0] == '.' {
			continue
		}
		path := filepath.Join(dir, name)
		src, err := os.ReadFile(path)
		if e.Type()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist) {
			err = &fs.PathError{Op: "open", Path: path, Err: errors.New("a symbolic link to nothing")}
		}
		if err != nil {
			return nil, err
		}
		switch {
		case source.IsOutput(path, src):
			f.outputs = append(f.outputs, path)
		case hasDirective(src):
			f.annotated, f.tests = append(f.annotated, path), f.tests || strings.HasSuffix(path, "_test.go")
		}
	}
	return f, nil
}

// hasDirective reports whether a comment in src is a directive or looks like one. Few files have a line that may be one.
func hasDirective(src []byte) bool {
	if !hasHint(src) {
		return false
	}
	for line := range bytes.Lines(src) {
		if hasHint(line) && annotations.MayConcern(string(line)) {
			return slices.ContainsFunc(comments(src), annotations.Concerns)
		}
	}
	return false
}

// hasHint reports whether text may have a line that concerns package annotations: it has a part of the tool's name, a character that is not
// ASCII, or a colon behind seven characters of which five may be of a misspelt name.
func hasHint(text []byte) bool {
	if bytes.Contains(text, []byte("imit")) || bytes.Contains(text, []byte("IMIT")) ||
		len(text) > 0 && slices.Max(text) >= utf8.RuneSelf {
		return true
	}
	for before, behind, ok := bytes.Cut(text, []byte(":")); ok; before, behind, ok = bytes.Cut(behind, []byte(":")) {
		word, of := bytes.TrimRight(before, " \t"), 0
		for i := len(word) - 7; i >= 0 && i < len(word); i++ {
			if strings.IndexByte("ratelimRATELIM-_", word[i]) >= 0 {
				of++
			}
		}
		if of >= 5 {
			return true
		}
	}
	return false
}

// comments returns the comments in src.
func comments(src []byte) (found []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(src)), src, nil, scanner.ScanComments)
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			return found
		case token.COMMENT:
			found = append(found, text)
		}
	}
}

// walk searches root and the folders below it, as the go command does for root/... . It leaves out empty folders.
func walk(root string) (found []*folder, err error) {
	root = strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator) // follows a symbolic link
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root {
			if name := d.Name(); name[0] == '.' || name[0] == '_' || name == "testdata" || name == "vendor" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // another module
			}
		}
		f, err := search(filepath.Clean(path))
		if err == nil && len(f.annotated)+len(f.outputs) > 0 {
			found = append(found, f)
		}
		return err
	})
	return found, err
}

// local returns the folders of a pattern that is a path. For patterns that only the go command understands, ok is false.
func local(dir, pattern string) (folders []*folder, ok bool, err error) {
	isPath := pattern == "." || pattern == ".." || strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../") ||
		filepath.IsAbs(pattern) || strings.HasSuffix(pattern, ".go")
	path := named(dir, pattern)
	root, all := strings.CutSuffix(path, string(filepath.Separator)+"...")
	switch {
	case !isPath || strings.Contains(root, "..."):
		return nil, false, nil
	case all && isWorkspace(root):
		folders, err = walkModules(root)
	case all:
		folders, err = walk(root)
		if len(folders) > 0 && ignores(root) {
			return nil, false, nil
		}
	case strings.HasSuffix(path, ".go"):
		folders, err = alone(path)
	default:
		folders = make([]*folder, 1)
		folders[0], err = search(path)
	}
	return folders, true, wrong(dir, pattern, err)
}

// alone returns the folder of a file, as if it held only that file and its output.
func alone(path string) ([]*folder, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	f, err := search(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if len(f.annotated) > 0 { // path may have methods of a type with directives in another file
		f.annotated = []string{path}
	}
	f.outputs = slices.DeleteFunc(f.outputs, func(out string) bool {
		src, _ := source.SourceOf(out)
		return src != path
	})
	return []*folder{f}, nil
}

// ignores reports whether the go.mod file above dir may leave folders out of patterns.
func ignores(dir string) bool {
	src, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if parent := filepath.Dir(dir); err != nil && parent != dir {
		return ignores(parent)
	}
	return bytes.Contains(src, []byte("ignore"))
}

// isWorkspace reports whether root has a go.work file, and no module of its own.
func isWorkspace(root string) bool {
	_, noWork := os.Stat(filepath.Join(root, "go.work"))
	_, noModule := os.Stat(filepath.Join(root, "go.mod"))
	return noWork == nil && noModule != nil && os.Getenv("GOWORK") == ""
}

// walkModules walks the modules of the workspace that are below root. The go command would not find them by root/... .
func walkModules(root string) (folders []*folder, err error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}")
	var said strings.Builder
	list.Dir, list.Stderr = root, &said
	out, err := list.Output()
	if err != nil {
		return nil, goError(fmt.Errorf("%w: stderr: %s", err, said.String()))
	}
	for module := range strings.Lines(string(out)) {
		module = strings.TrimSpace(module)
		if rel, err := filepath.Rel(root, module); err != nil || !filepath.IsLocal(rel) {
			continue
		}
		found, err := walk(module)
		if err != nil {
			return nil, err
		}
		folders = append(folders, found...)
	}
	return folders, nil
}

// wrong returns an error of the file system with the pattern in front, or with the path of the file if the error is about a file
// below the path that the pattern names.
func wrong(dir, pattern string, err error) error {
	if err == nil {
		return nil
	}
	msg := err.Error()
	if pe, ok := err.(*fs.PathError); ok {
		msg = pe.Err.Error()
		if found := filepath.Clean(pe.Path); found != named(dir, pattern) {
			pattern = annotations.Relative(dir, found)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		msg += "; make it readable, or leave it out of the packages"
	}
	return fmt.Errorf("%s: %s", pattern, msg)
}

// named returns the path that a pattern names.
func named(dir, pattern string) string {
	path := filepath.FromSlash(pattern)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// orphans returns the outputs to remove, because nothing is generated from their sources any more. A source without directives may have methods
// of a type with directives in another file of the folder, so it counts as annotated.
func (f *folder) orphans() []string {
	var gone []string
	for _, out := range f.outputs {
		src, ok := source.SourceOf(out)
		_, missing := os.Stat(src)
		switch {
		case !ok || slices.Contains(f.annotated, src):
		case missing == nil && len(f.annotated) > 0:
			f.annotated = append(f.annotated, src)
		default:
			gone = append(gone, out)
		}
	}
	return gone
}
