package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/didip/tollbooth/v7" // only the page uses these two
	_ "github.com/go-chi/httprate"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/seen"
)

var (
	heading   = regexp.MustCompile(`(?m)^##+ `)
	before    = regexp.MustCompile("(?ms)^```go before\n(.*?)^```$")
	after     = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	ofRefusal = regexp.MustCompile(`(?m)^\| a refusal \| before \| after \|\n(?:\|.*\n)+`)
	row       = regexp.MustCompile("(?m)^\\| `?([^` ]+)`? \\| (.*) \\| (.*) \\|$")
	inCode    = regexp.MustCompile("`([^`]+)`")
	digits    = regexp.MustCompile(`\d+`)
)

// TestMigrating compiles the code in docs/migrating.md that is replaced. This module requires the limiters which that code uses. If a section has a
// table of a refusal, the test runs its programs before and after, and compares their answers with the table. The files are in an overlay, each
// program in a package of its own.
func TestMigrating(t *testing.T) {
	page, err := os.ReadFile("../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	o, imports, calls, tables := overlay{}, "", "", []string(nil)
	for i, section := range heading.Split(string(page), -1) {
		old, table := before.FindAllStringSubmatch(section, -1), ofRefusal.FindString(section)
		for j, block := range old {
			name := "_"
			if table != "" {
				name = fmt.Sprintf("before%d", i)
			}
			imports += fmt.Sprintf("\t%s %q\n", name, o.add(fmt.Sprintf("before%d_%d", i, j), block[1]))
		}
		if table == "" {
			continue
		}
		own := after.FindStringSubmatch(section)
		if len(old) != 1 || own == nil {
			t.Fatalf("a section with a table of a refusal has no two programs: %.100s", section)
		}
		imports += fmt.Sprintf("\tafter%d %q\n", i, o.add(fmt.Sprintf("after%d", i), own[1]))
		calls += fmt.Sprintf("\t\t{seen.By(before%d.Limit), seen.By(after%[1]d.Limit)},\n", i)
		tables = append(tables, table)
	}
	o.add("main", fmt.Sprintf(program, imports, calls))
	var answers [][2][]seen.Answer
	if err := json.Unmarshal(o.run(t, "main"), &answers); err != nil || len(answers) != len(tables) || len(tables) < 4 {
		t.Fatalf("%d tables, and answers of %d sections, error %v", len(tables), len(answers), err)
	}
	for i, table := range tables {
		compare(t, table, answers[i][0], answers[i][1])
	}
}

const program = `package main

import (
	"encoding/json"
	"os"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/seen"

%s)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode([][2][]seen.Answer{
%s	}); err != nil {
		panic(err)
	}
}
`

// overlay has packages of one file each, by their names.
type overlay map[string]string

// add returns the path of the package.
func (o overlay) add(name, text string) string {
	o[name] = text
	return "github.com/ratelimit-go/ratelimit/benchmarks/" + name
}

// run returns what a package prints.
func (o overlay) run(t *testing.T, name string) []byte {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), map[string]string{}
	format := exec.Command("gofmt", "-l")
	for each, text := range o {
		file := filepath.Join(dir, each+".go")
		files[filepath.Join(here, each, each+".go")] = file
		write(t, file, text)
		if each != name {
			format.Args = append(format.Args, file)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(list))
	cmd := exec.Command("go", "run", "-overlay="+filepath.Join(dir, "overlay.json"), "./"+name)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := format.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not as gofmt leaves it: %s, error %v", out, err)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compare expects of a table that it has a row for each field of a refusal, with what is in it. Numbers and times only have to look alike. What is the
// same after as before is so in all answers.
func compare(t *testing.T, table string, before, after []seen.Answer) {
	refusal := [2]seen.Answer{before[100], after[100]}
	missing := maps.Clone(refusal[0].Header)
	maps.Copy(missing, refusal[1].Header)
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		field := cells[1]
		delete(missing, http.CanonicalHeaderKey(field))
		for i, cell := range cells[2:] {
			want, got := inCode.FindStringSubmatch(cell), valueOf(refusal[i], field)
			switch {
			case i == 1 && cell == "the same":
				for n := range before {
					if was, is := valueOf(before[n], field), valueOf(after[n], field); was != is {
						t.Errorf("answer %d has %s: %s before, and %s after\n%s", n+1, field, was, is, table)
					}
				}
			case want == nil && cell != "none" || want == nil && got != "" || want != nil && shape(got) != shape(want[1]):
				t.Errorf("a refusal has %s: %s; the cell is %s\n%s", field, got, cell, table)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("the table has no rows for %v\n%s", missing, table)
	}
}

func valueOf(a seen.Answer, field string) string {
	switch field {
	case "status":
		return strconv.Itoa(a.Status)
	case "body":
		return strings.TrimSpace(a.Body)
	}
	return strings.Join(a.Header.Values(field), ", ")
}

func shape(value string) string {
	if _, err := time.Parse(time.RFC1123, value); err == nil {
		return time.RFC1123
	}
	return digits.ReplaceAllString(value, "0")
}
