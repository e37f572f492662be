// Package load finds the packages that hold directives, parses them, and checks their declarations. It searches bytes
// before it asks the go command for anything, and asks that for little: see [Load]. What directives mean, it does not know.
package load

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Config says what to load.
type Config struct {
	Dir      string   // where patterns are relative to
	Patterns []string // as for the go command; a Go file stands for its package, of which only that file is asked for
	Tags     string   // build tags, separated by commas
}

// Set is what was found.
type Set struct {
	Fset    *token.FileSet
	Orphans []string                // generated files that should not be there, as nothing is generated from their sources any more
	Found   annotations.Diagnostics // notes, warnings, and what does not parse; complete only after the last package

	// Packages parses and checks one package after the other, each behind those that it imports. Only one is in memory at a
	// time. What does not parse is left out, with all that imports it. A package that does not type-check is there, as
	// generated code may be what it lacks.
	Packages iter.Seq[*source.Package]
}

// Load finds the packages with directives. An error is one of the patterns or the go command's.
//
// The go command is called once for the names of the files of the packages with directives and of all that they import. It is called
// again for patterns that only it understands, and for imported packages whose needed declarations mention C. Everything is checked
// from source: export data would have to be compiled, which takes seconds where the build cache is cold, and cannot work where a package
// uses what is to be generated.
func Load(ctx context.Context, cfg Config) (*Set, error) {
	set := &Set{Fset: token.NewFileSet()}
	l := &loader{ctx: ctx, cfg: cfg, set: set, asked: map[string]bool{}}
	set.Packages = l.each
	l.noteOverlay()
	folders, err := l.find()
	if err != nil || len(folders) == 0 {
		return set, err
	}
	return set, l.describe(folders)
}

type loader struct {
	ctx      context.Context
	cfg      Config
	set      *Set
	packages []*packages.Package // those with files to generate from, and those that such files test
	asked    map[string]bool     // the paths of files to generate from
	tests    bool                // there are directives in tests, beside a file to generate from
}

// find resolves the patterns to the folders with directives.
func (l *loader) find() ([]string, error) {
	var errs []error
	var folders []*folder
	var others []string // which only the go command understands
	for _, pattern := range l.cfg.Patterns {
		found, ok, err := local(l.cfg.Dir, pattern)
		if !ok {
			others = append(others, pattern)
		}
		folders, errs = append(folders, found...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(others) > 0 {
		found, err := l.expand(others)
		if err != nil {
			return nil, err
		}
		folders = append(folders, found...)
	}
	return l.choose(folders), nil
}

// word is what a command is called, but hardly a package.
var word = regexp.MustCompile(`^[a-z]+$`)

// expand asks the go command for the folders of patterns.
func (l *loader) expand(patterns []string) (folders []*folder, err error) {
	pkgs, err := l.list(packages.NeedName|packages.NeedFiles, false, patterns)
	if err != nil {
		return nil, err
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("%s: no package matches", strings.Join(patterns, " "))
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 && p.Dir == "" {
			if word.MatchString(p.PkgPath) {
				return nil, fmt.Errorf("%s is neither a package nor a command; see ratelimit -h", p.PkgPath)
			}
			return nil, listError(p)
		}
		f, err := search(p.Dir)
		if err != nil {
			return nil, wrong(l.cfg.Dir, p.PkgPath, err)
		}
		folders = append(folders, f)
	}
	return folders, nil
}

// choose notes which files are asked for, and returns their folders.
func (l *loader) choose(folders []*folder) []string {
	var dirs []string
	for _, f := range folders {
		l.set.Orphans = append(l.set.Orphans, f.orphans()...)
		for _, path := range f.annotated {
			l.asked[path] = true
			dirs, l.tests = append(dirs, f.path), l.tests || f.tests
		}
	}
	slices.Sort(dirs)
	slices.Sort(l.set.Orphans)
	l.set.Orphans = slices.Compact(l.set.Orphans)
	return slices.Compact(dirs)
}

// describe asks the go command about the packages in folders.
func (l *loader) describe(folders []string) error {
	pkgs, err := l.list(metadata, l.tests, folders)
	if err != nil {
		return err
	}
	ignored, tested, own := maps.Clone(l.asked), l.tested(pkgs), map[string]*packages.Package{}
	for _, p := range pkgs {
		if len(p.Errors) > 0 && len(p.GoFiles)+len(p.IgnoredFiles) == 0 && !isTestMain(p) {
			return listError(p)
		}
		for _, path := range p.GoFiles {
			delete(ignored, path)
			if (l.asked[path] || tested[p.PkgPath]) && (own[p.PkgPath] == nil || p.ForTest != "") { // the variant for tests has all files
				own[p.PkgPath] = p
			}
		}
	}
	for path := range ignored {
		l.noteIgnored(path)
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		l.packages = append(l.packages, own[path])
	}
	l.importVariants(own)
	return nil
}

// tested returns the paths of the packages whose external tests have a file to generate from. Such a file may mention what is to be
// generated for the package.
func (l *loader) tested(pkgs []*packages.Package) map[string]bool {
	found := map[string]bool{}
	for _, p := range pkgs {
		if p.ForTest != "" && p.ForTest != p.PkgPath && slices.ContainsFunc(p.GoFiles, func(path string) bool { return l.asked[path] }) {
			found[p.ForTest] = true
		}
	}
	return found
}

// isTestMain reports whether p is the program that the go command makes of tests.
func isTestMain(p *packages.Package) bool {
	return p.Name == "main" && strings.HasSuffix(p.ID, ".test")
}

// importVariants makes packages import the variants that are in the set. The go command names the packages without tests.
func (l *loader) importVariants(own map[string]*packages.Package) {
	for p := range packages.Postorder(l.packages) {
		for path, i := range p.Imports {
			if variant := own[i.PkgPath]; variant != nil {
				p.Imports[path] = variant
			}
		}
	}
}

// noteIgnored tells that no build with these tags sees the directives in a file.
func (l *loader) noteIgnored(path string) {
	l.set.Found.Note(l.begin(path), "the directives in this file are left out, as its build constraints are not met; set -tags, GOOS, GOARCH or CGO_ENABLED")
}

// begin is the first position in a file that is not parsed.
func (l *loader) begin(path string) token.Pos {
	return l.set.Fset.AddFile(path, -1, 0).Pos(0)
}
