package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

var mutations = flag.Int("mutations", 300, "how many mutated sources TestMutatedSources generates from")

const (
	together   = 10              // mutated scenarios in one run
	stuck      = 2 * time.Minute // after which a run counts as one that never ends
	mostOutput = 1 << 20         // bytes that a run may print
)

// TestMutatedSources runs the command on scenarios with one file damaged at random, some of them in one run. It checks that the command ends, does
// not panic, prints a text of bounded length, fails exactly if it prints an error, and leaves each generated file complete or as it was. After a run
// that fails, the command runs on the scenarios without errors, until a run succeeds.
func TestMutatedSources(t *testing.T) {
	scenarios, dir := scenarios(t), module(t)
	t.Chdir(dir)
	next := make(chan int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				tryMutated(t, dir, i, scenarios)
			}
		})
	}
	for i := 0; i < *mutations; i += together {
		next <- i
	}
	close(next)
	group.Wait()
}

// scenario has the files of a scenario. Those in sources have directives.
type scenario struct {
	name    string
	files   map[string][]byte
	sources []string
}

func scenarios(t *testing.T) []scenario {
	paths, err := filepath.Glob("../../testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	var all []scenario
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := scenario{name: filepath.Base(path), files: map[string][]byte{}}
		for _, f := range archive.Files {
			name := strings.TrimPrefix(f.Name, "want/") // what is generated lies there already
			s.files[name] = f.Data
			if name == f.Name && strings.HasSuffix(name, ".go") && bytes.Contains(f.Data, []byte("//ratelimit:")) {
				s.sources = append(s.sources, name)
			}
		}
		if len(s.sources) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// mutated has the files of a scenario, of which one is damaged.
type mutated struct {
	name  string
	files map[string][]byte
}

// mutation returns the mutation with this number.
func mutation(number int, scenarios []scenario) mutated {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	s := scenarios[random.IntN(len(scenarios))]
	name := s.sources[random.IntN(len(s.sources))]
	if random.IntN(5) == 0 { // anything else, such as what is generated
		names := slices.Sorted(maps.Keys(s.files))
		name = names[random.IntN(len(names))]
	}
	files := maps.Clone(s.files)
	files[name] = mutate(random, files[name])
	return mutated{s.name, files}
}

// tryMutated runs the command on the mutations that begin with this number.
func tryMutated(t *testing.T, root string, first int, scenarios []scenario) {
	left := map[string]mutated{} // by folder
	for number := first; number < min(first+together, *mutations); number++ {
		dir, m := fmt.Sprint("mutation", number), mutation(number, scenarios)
		for name, data := range m.files {
			testmodule.Write(t, filepath.Join(root, dir, name), data)
		}
		left[dir] = m
	}
	for len(left) > 0 {
		wrong, ended := runMutated(t, root, left)
		if !ended || len(wrong) == 0 {
			return
		}
		before := len(left)
		for _, dir := range wrong {
			delete(left, dir)
		}
		if len(left) == before {
			t.Errorf("%v: the errors are about %v", slices.Sorted(maps.Keys(left)), wrong)
			return
		}
	}
}

var mutationFolder = regexp.MustCompile(`\bmutation[0-9]+`)

// runMutated runs the command on the folders of some mutations, and returns the folders with errors.
func runMutated(t *testing.T, root string, all map[string]mutated) (wrong []string, ended bool) {
	dirs := slices.Sorted(maps.Keys(all))
	fail := func(format string, args ...any) { t.Errorf("%v: "+format, append([]any{dirs}, args...)...) }
	args := []string{"-json"}
	for _, dir := range dirs {
		args = append(args, "./"+dir+"/...")
	}
	status, stdout, stderr, ended := runUntilStuck(t.Context(), args...)
	switch {
	case !ended:
		fail("it does not end")
		return nil, false
	case stdout != "":
		fail("it printed %q", stdout)
	case len(stderr) > mostOutput:
		fail("it printed %d bytes", len(stderr))
	case strings.Contains(stderr, "internal error") || strings.Contains(stderr, "panicked"):
		fail("%s", stderr)
	}
	errors := errorLines(fail, stderr)
	if status != min(len(errors), 1) {
		fail("status %d with %d errors: %s", status, len(errors), stderr)
	}
	for dir, m := range all {
		checkOutputs(func(format string, args ...any) {
			t.Errorf("%s in %s: "+format, append([]any{m.name, dir}, args...)...)
		}, filepath.Join(root, dir), m.files, status)
	}
	for _, line := range errors {
		wrong = append(wrong, mutationFolder.FindAllString(line, -1)...)
	}
	if len(errors) > 0 && wrong == nil {
		fail("the errors name no folder: %s", stderr)
	}
	return wrong, true
}

// runUntilStuck runs the command, and gives up on it after a while.
func runUntilStuck(ctx context.Context, args ...string) (status int, stdout, stderr string, ended bool) {
	done := make(chan struct{})
	var out, errs bytes.Buffer
	go func() {
		defer close(done)
		defer func() {
			if fault := recover(); fault != nil {
				fmt.Fprint(&errs, "panicked: ", fault)
			}
		}()
		status = run(ctx, args, &out, &errs)
	}()
	select {
	case <-done:
		return status, out.String(), errs.String(), true
	case <-time.After(stuck):
		return 0, "", "", false
	}
}

// errorLines returns the messages of a run that are errors.
func errorLines(fail func(string, ...any), stderr string) (errors []string) {
	for line := range strings.Lines(stderr) {
		var m struct {
			annotations.Message
			Severity string `json:"severity"`
		}
		switch err := json.Unmarshal([]byte(line), &m); {
		case err != nil:
			fail("%q is no message: %v", line, err)
		case m.Text == "":
			fail("a message without text: %s", line)
		case m.Severity == "error":
			errors = append(errors, line)
		}
	}
	return errors
}

// checkOutputs checks the files after a run.
func checkOutputs(fail func(string, ...any), dir string, before map[string][]byte, status int) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		was, known := before[filepath.ToSlash(name)]
		switch {
		case err != nil:
			fail("%v", err)
		case strings.HasSuffix(name, ".tmp"):
			fail("%s is left over", name)
		case !strings.HasSuffix(name, "_ratelimit.go") && !strings.HasSuffix(name, "_ratelimit_test.go"):
		case status != done && !(known && bytes.Equal(text, was)):
			fail("%s was changed by a run that failed", name)
		case status == done:
			if _, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution); err != nil {
				fail("%s is not whole: %v", name, err)
			}
		}
		return nil
	})
	for name := range before {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil && status != done {
			fail("%s was removed by a run that failed", name)
		}
	}
}

var (
	wordOrNot    = regexp.MustCompile(`\w+|\s+|.`)
	wholeLine    = regexp.MustCompile(`.*\n?`)
	junk         = []string{"\x00", "\xff\xfe", "\ufeff", "\u202e", "\r", "`", `"`, "{", "}}", "/*", "//ratelimit:", "//ratelimit:rule ", "\\", "'", "\n", "\x1b[31m"}
	hugeMutation = 200 // one of so many is huge
)

// mutate damages a source in a few places.
func mutate(random *rand.Rand, src []byte) []byte {
	if random.IntN(hugeMutation) == 0 {
		filler := []string{"\x00", "{a}", "x", " ", "\n//ratelimit:rule limit=1 per=1m", "}"}[random.IntN(6)]
		return insert(random, src, strings.Repeat(filler, 1<<20/len(filler)))
	}
	for range 1 + random.IntN(3) {
		src = mutateOnce(random, src)
	}
	return src
}

func mutateOnce(random *rand.Rand, src []byte) []byte {
	parts := wordOrNot
	if random.IntN(3) == 0 {
		parts = wholeLine
	}
	pieces := parts.FindAll(src, -1)
	if len(pieces) == 0 {
		return insert(random, src, junk[random.IntN(len(junk))])
	}
	i, j := random.IntN(len(pieces)), random.IntN(len(pieces))
	switch random.IntN(8) {
	case 0:
		pieces[i] = nil
	case 1:
		pieces[i] = append(bytes.Clone(pieces[i]), pieces[i]...)
	case 2:
		pieces[i], pieces[j] = pieces[j], pieces[i]
	case 3:
		pieces[i] = pieces[j]
	case 4:
		return insert(random, src, junk[random.IntN(len(junk))])
	case 5:
		return src[:random.IntN(len(src)+1)]
	case 6: // a directive ends early
		directives := regexp.MustCompile(`//ratelimit:.*`).FindAllIndex(src, -1)
		if len(directives) == 0 {
			return src
		}
		at := directives[random.IntN(len(directives))]
		from := at[0] + random.IntN(at[1]-at[0])
		return append(bytes.Clone(src[:from]), src[at[1]:]...)
	case 7:
		return insert(random, src, strings.Repeat(junk[random.IntN(len(junk))], 1+random.IntN(5000)))
	}
	return bytes.Join(pieces, nil)
}

func insert(random *rand.Rand, src []byte, text string) []byte {
	at := random.IntN(len(src) + 1)
	return append(append(bytes.Clone(src[:at]), text...), src[at:]...)
}
