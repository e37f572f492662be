package generator_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/txtar"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

var update = flag.Bool("update", false, "rewrite what the scenarios expect")

// TestScenarios runs testdata/*.txtar. Each archive has the source files of a package, the expected output below want/, and the
// expected messages in "errors" and "warnings". All generated files are vetted in one run.
func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	root := newModule(t, "example.com/corpus")
	var toVet []string
	t.Run("generate", func(t *testing.T) {
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if find(archive, "errors") == nil || *update {
				toVet = append(toVet, "./"+name+"/...")
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(t, path, archive, filepath.Join(root, name))
			})
		}
	})
	if *update {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"", "-vettool=" + self} { // go vet's own analyzers, and those of TestMain
		args := []string{"vet", tool}
		if tool == "" {
			args = args[:1]
		}
		cmd := exec.Command("go", append(args, toVet...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s of what is generated: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestMain also serves as a vet tool that finds unnecessary checks for nil.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 0 && (args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg")) {
		unitchecker.Main(nilness.Analyzer) // which exits
	}
	testmodule.ReuseBuilds()
	os.Exit(m.Run())
}

// unbreakable are lines that have to be long: heads of signatures, and strings that stand alone.
var unbreakable = regexp.MustCompile("^(func .*\\($|func .* Unlimited\\(\\) .* {$|func _\\[|type |var _ |}|(\\w+: +)?(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`),?$)")

// longLine returns a line of generated code that is too long and could be broken, or "".
func longLine(src string) string {
	for line := range strings.Lines(src) {
		if utf8.RuneCountInString(line) > len("\n")+120 && !unbreakable.MatchString(strings.TrimSpace(line)) {
			return line
		}
	}
	return ""
}

func find(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// scenario generates in dir and compares the output with the archive. With -update it rewrites the archive instead.
func scenario(t *testing.T, path string, a *txtar.Archive, dir string) {
	got := &txtar.Archive{Comment: a.Comment}
	expected := map[string]string{}
	for _, f := range a.Files {
		if f.Name == "errors" || f.Name == "warnings" || strings.HasPrefix(f.Name, "want/") {
			expected[f.Name] = string(f.Data)
			continue
		}
		got.Files = append(got.Files, f)
		testmodule.Write(t, filepath.Join(dir, f.Name), f.Data)
	}
	found := generate(t, dir)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(found[name])})
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, text := range expected {
		if found[name] != text {
			t.Errorf("%s is not as expected, which -update would accept:\n%s", name, found[name])
		}
	}
	for name, text := range found {
		if line := longLine(text); line != "" && strings.HasPrefix(name, "want/") {
			t.Errorf("%s has a line of more than 120 characters: %s", name, line)
		}
		if _, ok := expected[name]; !ok {
			t.Errorf("unexpected %s:\n%s", name, text)
		}
	}
}

// generate writes the outputs of the packages in dir, and returns them as sections of a scenario.
func generate(t *testing.T, dir string) map[string]string {
	found := map[string]string{}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		found["errors"] = err.Error() + "\n"
	}
	if lines := warnings(result); len(lines) > 0 {
		found["warnings"] = strings.Join(lines, "\n") + "\n"
	}
	for _, f := range result.Files {
		rel, err := filepath.Rel(dir, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		found["want/"+filepath.ToSlash(rel)] = string(f.Source)
	}
	if _, err := generator.Write(result.Files); err != nil {
		t.Fatal(err)
	}
	return found
}

// warnings returns the messages that are not errors.
func warnings(r *generator.Result) (lines []string) {
	for _, m := range r.Messages {
		if m.Severity != annotations.SeverityError {
			lines = append(lines, m.String())
		}
	}
	return lines
}

// newModule creates a module that requires this one, replaced by its source.
func newModule(t testing.TB, path string) string {
	dir := testmodule.Dir(t)
	testmodule.Init(t, dir, "..", path)
	return dir
}
