package readme

import (
	"fmt"
	"go/format"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

var (
	exampleRow = regexp.MustCompile("(?m)^\\| .* \\| `([a-z]+=.*)` \\| `(.*)` \\|$")
	quotedCode = regexp.MustCompile(`"[^"]*", func`) // the expression beside its Go
	deskRule   = regexp.MustCompile(`(?m)^\t//ratelimit:rule .*$`)
)

// example is a row of the table in docs/keys.md that shows what becomes of an expression.
type example struct {
	dir       string // a package whose only directive is this one
	directive string // such as key="{n}"
	code      string // such as strconv.Itoa(n)
}

// writeExamples writes a package for each row of the table: the block desk.go, with the row's directive in place of its own.
func writeExamples(t *testing.T, dir, page string) []example {
	rows := exampleRow.FindAllStringSubmatch(page, -1)
	if len(rows) < 20 {
		t.Fatalf("keys.md has %d examples of expressions; expected at least 20", len(rows))
	}
	desk := read(t, filepath.Join(dir, "desk.go"))
	var examples []example
	for i, row := range rows {
		e := example{dir: filepath.Join(dir, fmt.Sprint("row", i+1)), directive: row[1], code: row[2]}
		rule := "\t//ratelimit:rule per=1s " + e.directive
		if !strings.HasPrefix(e.directive, "limit=") {
			rule += " limit=10"
		}
		testmodule.Write(t, filepath.Join(e.dir, "desk.go"), deskRule.ReplaceAllLiteralString(desk, rule))
		examples = append(examples, e)
	}
	return examples
}

// check expects the generated method to have the code, whatever its line breaks.
func (e example) check(t *testing.T) {
	code, err := format.Source([]byte(e.code))
	if err != nil {
		t.Errorf("keys.md: %s: %v", e.code, err)
	}
	generated := read(t, filepath.Join(e.dir, "desk_ratelimit.go"))
	_, method, _ := strings.Cut(generated, ") Take(")
	method = quotedCode.ReplaceAllString(method, "")
	whole := regexp.MustCompile(`(if |return |[(,{] ?)` + regexp.QuoteMeta(words(string(code))) + ` ?[){}]`)
	if !whole.MatchString(words(method)) {
		t.Errorf("keys.md: %s does not become %s but\n%s", e.directive, e.code, method)
	}
}

// words returns code on one line.
func words(code string) string {
	line := strings.Join(strings.Fields(code), " ")
	return strings.NewReplacer("( ", "(", ", )", ")").Replace(line)
}
