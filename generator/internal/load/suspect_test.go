package load

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
)

// TestOneRecogniser compares hasDirective, which decides whether a file is read, with what package annotations finds in the file.
func TestOneRecogniser(t *testing.T) {
	leads := []string{"//", "// ", "//\t", "/* ", "/*\n * ", "///", "// @", "//+", "x() // "}
	tools := []string{"ratelimit", "RateLimit", "RATELIMIT", "rate-limit", "rate_limit", "rate limit", "ratlimit", "raetlimt", "ratelmt", "ratelimiter", "rate:limit", "go:ratelimit", "ｒａｔｅlimit", "rat\u200belmit", "golden", "rate"}
	partings := []string{":", ": ", " :", "：", " ∶ ", " ", ".", "=", ""}
	verbs := []string{"rule", "Rule", "RULE", "wrap", "skip", "fallback", "bare", "rul", "ruler", "limit", "key", ""}
	rests := []string{"", " limit=1", " key=x limit=1", "=1", " of thumb", " later", " prepay"}
	texts := 0
	for _, lead := range leads {
		for _, tool := range tools {
			for _, parting := range partings {
				for _, verb := range verbs {
					for _, rest := range rests {
						text := lead + tool + parting + verb + rest
						if strings.HasPrefix(lead, "/*") {
							text += " */"
						}
						texts++
						if found, want := hasDirective([]byte("\t"+text+"\n")), finds(t, text); found != want {
							t.Errorf("%q: %t, package annotations says %t", text, found, want)
						}
					}
				}
			}
		}
	}
	t.Log(texts, "texts")
}

// finds reports whether package annotations finds a directive or an error in text, a comment after or above code.
func finds(t *testing.T, text string) bool {
	src := "package p\n\nvar _ = x()\nfunc f() {\n" + text + "\n\t_ = 1\n}\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if _, is := annotations.Bare(f.Comments[0].List[0]); is {
		return false // the generator has nothing to do with it
	}
	return len(annotations.Stray(fset, f, nil)) > 0
}
