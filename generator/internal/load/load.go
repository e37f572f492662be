// Package load finds the packages with directives, parses them, and type-checks their declarations. It does not know what
// directives mean. To be fast, it searches the text of files before it calls the go command: see [Load].
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Config says what to load.
type Config struct {
	Dir      string   // Patterns are relative to it
	Patterns []string // packages as for the go command, or Go files; a Go file means its package, but generating from that file only
	Tags     string   // build tags, separated by commas

	// For a build of another platform: Files are the paths of the files to generate from, in place of Patterns, and Fset is that of the first build.
	Build *Build
	Files []string
	Fset  *token.FileSet

	Needs func(*source.Package) source.Needs // says what the directives of a parsed package need, before it is checked
}

// Set is the result of Load.
type Set struct {
	Fset    *token.FileSet
	Orphans []string                // generated files to remove, because nothing is generated from their sources any more
	Ignored []string                // files to generate from that this build leaves out
	Found   annotations.Diagnostics // notes, warnings and syntax errors; complete after the last package

	// Packages parses and checks one package after the other, each after those that it imports, so that only one is in memory
	// at a time. It leaves out packages with syntax errors, and all packages that import them. It yields packages with type
	// errors, as the declarations that they lack may be those to generate.
	Packages iter.Seq[*source.Package]
}

// Load finds the packages with directives. It returns an error if a pattern is wrong or the go command fails.
//
// It calls the go command once, for the names of the files of the packages with directives and of everything that they import. It
// calls it again for patterns that only the go command understands, and for imported packages whose needed declarations mention C.
// Everything is checked from source. Export data would have to be compiled, which takes seconds if the build cache is cold and
// fails if a package uses code that is still to be generated.
func Load(ctx context.Context, cfg Config) (*Set, error) {
	set := &Set{Fset: cmp.Or(cfg.Fset, token.NewFileSet())}
	l := &loader{ctx: ctx, cfg: cfg, set: set, asked: map[string]bool{}, known: map[string]*packages.Package{}}
	set.Packages = l.each
	l.noteOverlay()
	folders, err := l.folders()
	if err != nil || len(folders) == 0 {
		return set, err
	}
	return set, l.describe(folders)
}

type loader struct {
	ctx      context.Context
	cfg      Config
	set      *Set
	packages []*packages.Package // with files to generate from, or with an external test that has such files
	asked    map[string]bool     // the paths of files to generate from
	tests    bool                // a folder with files to generate from has a test file with directives

	known map[string]*packages.Package // by path: all that the go command has described
}

// folders resolves the patterns to the folders with directives.
func (l *loader) folders() ([]string, error) {
	var errs []error
	var folders []*folder
	if l.cfg.Files != nil {
		return l.choose([]*folder{{annotated: l.cfg.Files, tests: true}}), nil
	}
	var others []string // patterns that only the go command understands
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

// word matches an argument that is more likely a command, such as "help", than a package.
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

// choose records the files to generate from and the orphans, and returns the folders of the former.
func (l *loader) choose(folders []*folder) []string {
	var dirs []string
	for _, f := range folders {
		l.set.Orphans = append(l.set.Orphans, f.orphans()...)
		for _, path := range f.annotated {
			l.asked[path] = true
			dirs, l.tests = append(dirs, filepath.Dir(path)), l.tests || f.tests
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
	l.know(pkgs)
	ignored, tested, own := maps.Clone(l.asked), l.tested(pkgs), map[string]*packages.Package{}
	for _, p := range pkgs {
		if len(p.Errors) > 0 && len(p.GoFiles)+len(p.IgnoredFiles) == 0 && !isTestMain(p) {
			return listError(p)
		}
		for _, path := range p.GoFiles {
			delete(ignored, path)
			if (l.asked[path] || tested[p.PkgPath]) && (own[p.PkgPath] == nil || p.ForTest != "") { // the test variant has all files
				own[p.PkgPath] = p
			}
		}
	}
	l.set.Ignored = slices.Sorted(maps.Keys(ignored))
	for _, path := range slices.Sorted(maps.Keys(own)) {
		l.packages = append(l.packages, own[path])
	}
	l.importVariants(own)
	return nil
}

// know records packages, and those that they import.
func (l *loader) know(pkgs []*packages.Package) {
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		if l.known[p.PkgPath] == nil {
			l.known[p.PkgPath] = p
		}
	})
}

// tested returns the paths of the packages whose external tests have a file to generate from. Such a file may mention code that is
// to be generated for the package itself.
func (l *loader) tested(pkgs []*packages.Package) map[string]bool {
	found := map[string]bool{}
	for _, p := range pkgs {
		if p.ForTest != "" && p.ForTest != p.PkgPath && slices.ContainsFunc(p.GoFiles, func(path string) bool { return l.asked[path] }) {
			found[p.ForTest] = true
		}
	}
	return found
}

// isTestMain reports whether p is the test program that the go command generates.
func isTestMain(p *packages.Package) bool {
	return p.Name == "main" && strings.HasSuffix(p.ID, ".test")
}

// importVariants replaces imported packages by their test variants, if these are in the set.
func (l *loader) importVariants(own map[string]*packages.Package) {
	for p := range packages.Postorder(l.packages) {
		for path, i := range p.Imports {
			if variant := own[i.PkgPath]; variant != nil {
				p.Imports[path] = variant
			}
		}
	}
}
