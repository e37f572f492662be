package emit

import (
	"bytes"
	"go/format"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"
	"pgregory.net/rapid"
)

// TestDocIsGofmts expects that gofmt does not change generated comments, whatever the directives and the doc comments contain.
func TestDocIsGofmts(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"+build", "//go:build x", "//line x.go:1", "/*", "*/", "//", "#", "##", "# A", "-", "*", "1.", "1)", "[x]:", "[X]", "http://x.y/''", "''", "``",
		"'''", "```", "`'", "Deprecated:", "BUG(x):", "\x00", "\xff", "\ufeff", "\u2028", "\r", "x", "a.long-word(that, fills), a.lot of(the, line)",
	}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(word).Draw(t, "words"), rapid.SampledFrom([]string{" ", "", "\n"}).Draw(t, "between"))
		sentence := wrapped("It may be called once in 1m for one " + oneLine(text) + ".")
		file := jen.NewFile("x")
		file.Add(comment("X is documented.\n\n+build\n\t+build x\n" + sentence).Func().Id("X").Params().Block())
		var src bytes.Buffer
		if err := file.Render(&src); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, err := format.Source(src.Bytes())
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, line := range strings.Split(sentence, "\n") {
			if !strings.Contains(string(got), "\n// "+line+"\n") {
				t.Errorf("%q: gofmt changed %q:\n%s", text, line, got)
			}
		}
	})
}

// TestDocBreaksNoExpression expects each expression of a sentence on one line, wherever it stands.
func TestDocBreaksNoExpression(t *testing.T) {
	const expression = "{len(texts) > 0 ? texts[0] : tenant}"
	for n := range 120 {
		text := wrapped(strings.Repeat("x", n) + " per " + said(expression[1:len(expression)-1]) + " and " + said("clientIP(ctx)"))
		if !strings.Contains(text, expression) || !strings.Contains(text, "client IP") {
			t.Errorf("a line ends in an expression:\n%s", text)
		}
	}
}
