// Package generator writes the wrappers of annotated types: it loads the packages that hold directives, collects what the
// directives say, compiles their expressions, and emits one Go file for each annotated one. [Generate] touches no file;
// [Write] and [Check] are the only ones to use the disk beyond reading sources. Flags and terminals are not known here.
package generator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/check"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/compile"
	"github.com/ratelimit-go/ratelimit/generator/internal/emit"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Config says what to generate from.
type Config struct {
	Dir      string   // where Patterns are relative to, and the paths in messages; "" is the working directory
	Patterns []string // packages as the go command names them, without any the one in Dir; a Go file stands for itself alone
	Tags     string   // build tags, separated by commas
	Strict   bool     // what is a warning else is an error
}

// Result is what was generated.
type Result struct {
	Files    []File   // sorted by name
	Rules    []Rule   // in the order of the source
	Warnings []string // lines for the user, such as file:line:col: warning: ...
}

// File is a file as it should be.
type File struct {
	Name   string // its absolute path
	Source []byte // nil: the file should not be there, as its source has no directives any more
}

// Generate generates the files of the packages. The error has all that is wrong, a line each, as file:line:col: message; the
// result then has nothing but warnings.
func Generate(ctx context.Context, cfg Config) (*Result, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	r := &Result{}
	set, err := load.Load(ctx, load.Config{Dir: dir, Patterns: patterns, Tags: cfg.Tags})
	r.Warnings = append(r.Warnings, set.Notes...)
	if err != nil {
		return r, err
	}
	pkgs, errs, warnings := collectAll(set)
	if cfg.Strict {
		errs, warnings = append(errs, warnings...), nil
	}
	for _, line := range warnings.Lines(set.Fset, dir) {
		r.Warnings = append(r.Warnings, warning(line))
	}
	if err := errs.Err(set.Fset, dir); err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	files, faults := emitAll(pkgs)
	if err := faults.Err(set.Fset, dir); err != nil {
		return r, err
	}
	for _, name := range set.Orphans {
		files = append(files, File{Name: name})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	r.Files, r.Rules = files, listAll(set.Fset, pkgs)
	return r, nil
}

// warning marks a line that has a position as a warning.
func warning(line string) string {
	if at, msg, ok := strings.Cut(line, ": "); ok {
		return at + ": warning: " + msg
	}
	return line
}

// collectAll collects, compiles and checks the annotated types of all packages.
func collectAll(set *load.Set) (pkgs []*model.Package, errs, warnings annotations.Errors) {
	for _, p := range set.Packages {
		pkg, e, w := collect.Package(set.Fset, p)
		errs, warnings = append(errs, e...), append(append(warnings, w...), p.Warnings...)
		e = compile.Package(pkg)
		if slices.ContainsFunc(e, isUnheardOf) {
			e = append(e, p.Unimported()...) // one of which may bring that name
		}
		errs = append(errs, e...)
		pkgs = append(pkgs, pkg)
	}
	e, w := check.Packages(set.Fset, pkgs)
	return pkgs, append(errs, e...), append(warnings, w...)
}

// isUnheardOf reports whether an error tells of a name that is like no other.
func isUnheardOf(e annotations.Error) bool {
	return strings.HasPrefix(e.Msg, "unknown ") && !strings.Contains(e.Msg, "did you mean")
}

// emitAll writes the text of all files.
func emitAll(pkgs []*model.Package) (files []File, faults annotations.Errors) {
	for _, p := range pkgs {
		for _, f := range p.Files {
			if len(f.Wrappers) == 0 {
				if src, err := os.ReadFile(f.Output); err == nil && load.IsOutput(src) {
					files = append(files, File{Name: f.Output})
				}
				continue
			}
			src, errs := emit.File(p, f)
			files, faults = append(files, File{Name: f.Output, Source: src}), append(faults, errs...)
		}
	}
	return files, faults
}
