package generator_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
)

// lookalikes are comments that only look like directives. Each line is one kind.
var lookalikes = []string{
	"//ratelimiter:rule name=k limit=1 per=1m",
	"//ratelimiting:rule limit=1 per=1m",
	"//ratelimit：rule name=l limit=1 per=1m",
	"//ratelimit ： rule limit=1 per=1m",
	"//ratelimit﹕rule limit=1 per=1m",
	"//ratelimit∶rule limit=1 per=1m",
	"//ratelimitːrule limit=1 per=1m",
	"//ratelimit։rule limit=1 per=1m",
	"//ratelimit::rule limit=1 per=1m",
	"//rate:limit rule name=r limit=1 per=1m",
	"//rate:limit:rule limit=1 per=1m",
	"//go:ratelimit:rule name=t limit=1 per=1m",
	"//go: ratelimit: rule limit=1 per=1m",
	"//go:ratelimit rule limit=1 per=1m",
	"//\u200bratelimit:rule name=z limit=1 per=1m",
	"//rate\u200blimit:rule limit=1 per=1m",
	"//ratel\u00adi\u00admit:rule limit=1 per=1m",
	"//ratelimit\u2060:rule limit=1 per=1m",
	"//ratelimit:\u200drule limit=1 per=1m",
	"//ratelimit:rule\u200b limit=1 per=1m",
	"//ratelimit:rule \u200blimit=1 per=1m",
	"//\u00a0ratelimit:rule limit=1 per=1m",
	"//\u3000ratelimit:rule limit=1 per=1m",
	"//ratelimit:\u3000rule limit=1 per=1m",
	"//ｒａｔｅｌｉｍｉｔ：ｒｕｌｅ limit=1 per=1m",
	"//ratelimit:ｒｕｌｅ limit=1 per=1m",
	"//ratelimit:rule limit＝1 per=1m",
	"//＠ratelimit:rule limit=1 per=1m",
	"//rаtеlimit:rule limit=1 per=1m", // two Cyrillic letters
	"//RATELIMIT:RULE limit=1 per=1m",
	"//RateLimit:Rule limit=1 per=1m",
	"//raTeLiMiT : rule limit=1 per=1m",
	"// ratelimit:rule limit=1 per=1m",
	"//\tratelimit:rule limit=1 per=1m",
	"//ratelimit: rule limit=1 per=1m",
	"//ratelimit :rule limit=1 per=1m",
	"//rate-limit:rule limit=1 per=1m",
	"//Rate_Limit:rule limit=1 per=1m",
	"//ratlimit:rule limit=1 per=1m",
	"//raetlimt:rule limit=1 per=1m",
	"//ratelimit:rul limit=1 per=1m",
	"//ratelimiter:rul limit=1 per=1m",
	"//ratelimit: limit=1 per=1m",
	"//@ratelimit:rule limit=1 per=1m",
	"//+ratelimit:rule limit=1 per=1m",
	"///ratelimit:rule limit=1 per=1m",
	"/* //ratelimit:rule limit=1 per=1m */",
	"/*\n\tM has a rule.\n\n\t//ratelimit:rule limit=1 per=1m\n\t*/",
	"/* M has a rule.\n\t//ratelimit：rule limit=1 per=1m */",
}

// TestLookalikes expects an error about each lookalike above a method, and about most at the end of a line, in packages without directives.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	root := newModule(t, "example.com/lookalikes")
	for i, line := range lookalikes {
		above := fmt.Sprintf("package x\n\ntype X interface {\n\t%s\n\tM() error\n}\n", line)
		testmodule.Write(t, filepath.Join(root, "above", fmt.Sprint(i), "x.go"), []byte(above))
		if !strings.HasPrefix(line, "/*") {
			testmodule.Write(t, filepath.Join(root, "behind", fmt.Sprint(i), "x.go"), []byte("package x\n\nvar X = 1 "+line+"\n"))
		}
	}
	_, err := generator.Generate(t.Context(), generator.Config{Dir: root, Patterns: []string{"./..."}})
	found, _ := errors.AsType[generator.Errors](err)
	at := map[string]bool{}
	for _, m := range found {
		at[filepath.ToSlash(m.File)] = true
	}
	for i, line := range lookalikes {
		for _, place := range []string{"above", "behind"} {
			if !at[fmt.Sprintf("%s/%d/x.go", place, i)] && !(place == "behind" && strings.HasPrefix(line, "/*")) {
				t.Errorf("%s: %q is not found", place, line)
			}
		}
	}
}

// TestProse expects nothing about sentences and code that only mention limits.
func TestProse(t *testing.T) {
	t.Parallel()
	root := newModule(t, "example.com/prose")
	testmodule.Write(t, filepath.Join(root, "x.go"), []byte(plain))
	for i, text := range []string{
		"// Rate-limit rule name=login is configured in Envoy.",
		"// ratelimit rule limit=1 per=1m is how others write it.",
		"// Rate limit: ten a minute.",
		"// The ratelimit: ten a minute.",
		"// @RateLimit(limit=1) is a comment for another tool.",
		"// ratelimit.Rule{Limit: 1} is a rule.",
		"// pageLimit: how many rows",
		"// timeLimit:skip",
		"//\n\t// Example:\n\t//\n\t//\t//ratelimit:rule limit=1 per=1m",
		"/*\n\tM is documented:\n\n\t\t//ratelimit:rule limit=1 per=1m\n\t\tM() error\n\t*/",
		"/* M is documented:\n\n\t\tratelimit:rule limit=1 per=1m\n\t*/",
		"/*\n\t * M is documented:\n\t *\n\t *\t//ratelimit:rule limit=1 per=1m\n\t */",
		"// //ratelimit:rule limit=1 per=1m",
	} {
		src := fmt.Sprintf("package x\n\ntype X interface {\n\t%s\n\tM() error\n}\n\nvar _ = struct{ RateLimit int }{\n\tRateLimit: 1,\n}\n", text)
		testmodule.Write(t, filepath.Join(root, fmt.Sprint(i), "x.go"), []byte(src))
	}
	expectWritten(t, generator.Config{Dir: root, Patterns: []string{"./..."}}, "x_ratelimit.go")
	if _, notes := written(t, generator.Config{Dir: root, Patterns: []string{"./..."}}); len(notes) > 0 {
		t.Error(notes)
	}
}
