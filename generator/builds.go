package generator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	"github.com/ratelimit-go/ratelimit/generator/internal/load"
	"github.com/ratelimit-go/ratelimit/generator/internal/pipeline"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// leave notes that a build leaves a file out that may have something to generate.
func (r *run) leave(path string, in load.Build) {
	if _, known := r.left[path]; !known {
		r.left[path] = in
	}
}

// elsewhere generates from the files that this build leaves out. It loads each of them under a build that has it.
func (r *run) elsewhere(ctx context.Context) {
	for {
		path, ok := r.next()
		if !ok || ctx.Err() != nil {
			break
		}
		other, ok := r.left[path].With(collect.ConstraintAt(path))
		if !ok {
			r.leaveOut(path, "its build constraint is met by no build")
			continue
		}
		set, err := r.loadFor(ctx, other, r.together())
		if err == nil && slices.Contains(set.Ignored, path) {
			err = errors.New("the go command leaves it out")
		}
		if err != nil {
			r.leaveOut(path, fmt.Sprintf("it cannot be loaded for %s: %v", other, err))
			continue
		}
		r.built[path] = true
		r.load(set, other)
	}
	for _, l := range r.lacking {
		if slices.ContainsFunc(l.files, func(path string) bool { return !r.fine[path] }) {
			r.add(l.found, l.in)
		}
	}
}

// lack returns the errors of a package. If files that this build leaves out declare names which the package needs, lack keeps the errors until the
// builds that have these files were tried.
func (r *run) lack(p *source.Package, result *pipeline.Result, in load.Build) annotations.Diagnostics {
	others := p.Lacks()
	if len(others) == 0 {
		return result.Found
	}
	for _, path := range others {
		r.leave(path, in)
	}
	l := lacking{found: result.Found, in: in}
	for _, f := range p.Files {
		if f.Asked {
			l.files = append(l.files, f.Path)
		}
	}
	r.lacking = append(r.lacking, l)
	return nil
}

// add adds what was found in a build, unless an earlier build has found it. It names a build that is not this one, but for files that only that
// build has.
func (r *run) add(found annotations.Diagnostics, in load.Build) {
	for _, d := range found {
		at := r.set.Fset.PositionFor(d.Pos, false)
		said := fmt.Sprint(at, d.Msg)
		if r.known[said] {
			continue
		}
		r.known[said] = true
		if _, isLeft := r.left[at.Filename]; in != r.here && !isLeft && !strings.Contains(d.Msg, in.String()) {
			d.Msg += fmt.Sprintf(" (for %s)", in)
		}
		r.found = append(r.found, d)
	}
}

// next returns the first file that builds have left out so far.
func (r *run) next() (path string, ok bool) {
	for _, path := range slices.Sorted(maps.Keys(r.left)) {
		if !r.built[path] {
			return path, true
		}
	}
	return "", false
}

// together returns the files that builds have left out so far, those beside them, and those of packages that lack names.
func (r *run) together() []string {
	all := slices.Collect(maps.Keys(r.left))
	for _, l := range r.lacking {
		all = append(all, l.files...)
	}
	for path := range r.built {
		_, isLeft := r.left[path]
		if !isLeft && slices.ContainsFunc(all, func(left string) bool { return filepath.Dir(left) == filepath.Dir(path) }) {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leaveOut notes why nothing is generated from a file with directives.
func (r *run) leaveOut(path, why string) {
	r.built[path] = true
	if slices.Contains(r.set.Ignored, path) {
		begin := r.set.Fset.AddFile(path, -1, 0).Pos(0)
		r.found.Note(begin, "the directives in this file are left out, as %s", why)
	}
}

// loadFor loads the packages of files as a build has them.
func (r *run) loadFor(ctx context.Context, build load.Build, files []string) (*load.Set, error) {
	cfg := r.cfg
	cfg.Build, cfg.Fset, cfg.Files = &build, r.set.Fset, files
	return load.Load(ctx, cfg)
}

// differs reports an output that an earlier build has made in another way. It names the first lines that differ.
func (r *run) differs(o pipeline.Output, in load.Build) (found annotations.Diagnostics) {
	before := r.made[o.Output]
	if before == nil || bytes.Equal(before.file.Source, o.Text) {
		return nil
	}
	here, there := append(bytes.Split(before.file.Source, []byte("\n")), nil), append(bytes.Split(o.Text, []byte("\n")), nil)
	i := 0
	for i < min(len(here), len(there))-1 && bytes.Equal(here[i], there[i]) {
		i++
	}
	found.Add(o.Wrappers[0].Pos, "what is generated differs: %q for %s, %q for %s; declare what differs in files with build constraints, or give %s one",
		bytes.TrimSpace(here[i]), before.in, bytes.TrimSpace(there[i]), in, filepath.Base(o.Source))
	return found.Coded("output")
}

// compare generates from the files whose outputs depend on types of a platform, for the three most frequent systems. It ignores packages that do
// not compile there.
func (r *run) compare(ctx context.Context) {
	for _, other := range r.here.Others() {
		if len(r.varying) == 0 || ctx.Err() != nil {
			return
		}
		set, err := r.loadFor(ctx, other, r.varying)
		if err != nil {
			continue
		}
		var found annotations.Diagnostics
		for p := range set.Packages {
			if result := pipeline.Read(r.set.Fset, p); !result.Found.HasErrors() {
				for _, o := range result.Emit() {
					found = append(found, r.differs(o, other)...)
				}
			}
		}
		if r.add(found, other); len(found) > 0 {
			return
		}
	}
}
