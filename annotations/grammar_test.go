package annotations

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/directives.md")

// TestDocs keeps the list at the end of docs/directives.md equal to the table; -update rewrites it.
func TestDocs(t *testing.T) {
	const path, mark = "../docs/directives.md", "<!-- What follows is written by make generate from annotations/spec.go. -->\n"
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, marked := strings.Cut(string(got), mark)
	if !marked {
		t.Fatalf("%s lacks %s", path, mark)
	}
	want := byHand + mark + documentation()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(got) != want {
		t.Errorf("%s differs from the table of arguments; run: make generate", path)
	}
}

// documentation returns the table of arguments in Markdown.
func documentation() string {
	var b strings.Builder
	b.WriteString("\n## Every verb and argument\n")
	cell := strings.NewReplacer("|", `\|`)
	for _, v := range Verbs {
		b.WriteString("\n### `//ratelimit:" + v.Name + "`\n\nGoes " + v.On + ". It " + v.Doc + ".\n")
		if len(v.Args) > 0 {
			b.WriteString("\n| argument | value | meaning |\n|---|---|---|\n")
		}
		for _, a := range v.Args {
			value := string(a.Kind)
			if a.Kind == EnumKind {
				value = "`" + strings.Join(a.words(), "`, `") + "`"
			}
			b.WriteString("| `" + a.Name + "` | " + value + " | " + cell.Replace(a.Doc) + " |\n")
		}
	}
	return b.String()
}

// TestGrammar expects the help of a verb to name its place, its arguments and all their words.
func TestGrammar(t *testing.T) {
	for _, v := range Verbs {
		text := Grammar(&v)
		for _, a := range v.Args {
			for _, want := range append(a.words(), a.Name+" ", a.Doc, v.On) {
				if !strings.Contains(text, want) {
					t.Errorf("the help of %s lacks %q:\n%s", v.Name, want, text)
				}
			}
		}
	}
}

// TestGrammarInDoc expects the grammar in the package documentation to name the verbs of the table.
func TestGrammarInDoc(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := "verb      = \"" + strings.Join(VerbNames, "\" | \"") + "\"\n"
	if !strings.Contains(string(doc), want) {
		t.Errorf("doc.go lacks %s", want)
	}
}

// TestBare reads the reasons of //ratelimit:bare comments.
func TestBare(t *testing.T) {
	for text, want := range map[string]string{
		"//ratelimit:bare operators do not count": "operators do not count",
		"//ratelimit:bare":                        "",
	} {
		if reason, ok := Bare(comments(text).List[0]); !ok || reason != want {
			t.Errorf("%s: %q, %t", text, reason, ok)
		}
	}
	for _, text := range []string{"// ratelimit:bare x", "//ratelimit:barely", "//ratelimit:rule limit=1"} {
		if _, ok := Bare(comments(text).List[0]); ok {
			t.Errorf("%s is none", text)
		}
	}
}
