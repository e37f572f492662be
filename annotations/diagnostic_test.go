package annotations

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// marker matches a line of testdata that states the error expected in the directive above it.
var marker = regexp.MustCompile(`(?m)^(\s*//\s*)([\^<]) (.*)$`)

// expected returns the errors that the markers of src state, in the format of Message.String.
func expected(name, src string) []string {
	var want []string
	above := 0
	for i, line := range strings.Split(src, "\n") {
		m := marker.FindStringSubmatch(line)
		if m == nil {
			above = i + 1
			continue
		}
		column := len(m[1]) + 1
		if m[2] == "<" {
			column = strings.Index(line, "//") + 1
		}
		want = append(want, strings.Join([]string{name, strconv.Itoa(above), strconv.Itoa(column)}, ":")+": "+m[3])
	}
	return want
}

func read(t *testing.T, name, src string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := goparser.ParseFile(fset, name, src, goparser.ParseComments|goparser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return fset, file
}

// documented returns the doc comments of the types and methods of file.
func documented(file *ast.File) map[*ast.CommentGroup]bool {
	used := map[*ast.CommentGroup]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			used[n.Doc] = true
		case *ast.TypeSpec:
			used[n.Doc] = true
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				used[m.Doc] = len(m.Names) > 0
			}
		}
		return true
	})
	return used
}

// TestMarked compares the text and the column of every error in testdata. It parses all comments. In strays.txt, comments
// without a declaration are stray.
func TestMarked(t *testing.T) {
	for _, name := range []string{"rules.txt", "verbs.txt", "nearmisses.txt", "strays.txt"} {
		for _, newline := range []string{"\n", "\r\n"} {
			t.Run(name+strconv.Quote(newline), func(t *testing.T) {
				src, err := os.ReadFile(filepath.Join("testdata", name))
				if err != nil {
					t.Fatal(err)
				}
				fset, file := read(t, name, strings.ReplaceAll(string(src), "\n", newline))
				var errs Diagnostics
				if name == "strays.txt" {
					errs = Stray(fset, file, documented(file))
				} else {
					for _, cg := range file.Comments {
						_, e := Parse(cg)
						errs = append(errs, e...)
					}
				}
				var got []string
				for _, m := range errs.Messages(fset, "") {
					got = append(got, m.String())
				}
				diff(t, got, expected(name, string(src)))
			})
		}
	}
}

// diff compares two lists and ignores their order.
func diff(t *testing.T, got, want []string) {
	t.Helper()
	for _, g := range got {
		if !isOneOf(g, want) {
			t.Errorf("unexpected %s", g)
		}
	}
	for _, w := range want {
		if !isOneOf(w, got) {
			t.Errorf("missing    %s", w)
		}
	}
}

func TestErrors(t *testing.T) {
	fset := token.NewFileSet()
	file := func(name string) *token.File {
		f := fset.AddFile(name, -1, 100)
		f.SetLines([]int{0, 10, 20})
		return f
	}
	root := string(filepath.Separator) + filepath.Join("home", "src")
	b, a := file(filepath.Join(root, "sms", "b.go")), file(filepath.Join(root, "sms", "a.go"))
	errs := Diagnostics{
		{Pos: b.Pos(12), Msg: "second"},
		{Pos: b.Pos(25), Msg: "third"},
		{Pos: b.Pos(12), Msg: "another"},
		{Pos: b.Pos(12), Msg: "second"},
		{Pos: a.Pos(3), Msg: "of a"},
		{Pos: token.NoPos, Msg: "nowhere"},
		{Pos: b.Pos(1), Msg: "first"},
	}
	for dir, prefix := range map[string]string{
		filepath.Join(root, "sms"): "",
		root:                       "sms/",
		filepath.Join(root, "web"): "../sms/",
		filepath.Join(root, "a", "b", "c", "d", "e"): filepath.ToSlash(root) + "/sms/", // shorter than from there
		"": filepath.ToSlash(root) + "/sms/",
	} {
		got := filepath.ToSlash(Join(errs.Messages(fset, dir)))
		want := "nowhere\nPa.go:1:4: of a\nPb.go:1:2: first\nPb.go:2:3: another\nPb.go:2:3: second\nPb.go:3:6: third"
		if want = strings.ReplaceAll(want, "P", prefix); got != want {
			t.Errorf("in %q:\n%s\nwant:\n%s", dir, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	valid := []string{"id", "phone", "limit", "per", "on-error", "token-bucket", "clientIP"}
	for word, want := range map[string]string{
		"idd":         "id",
		"phoen":       "phone",
		"Phone":       "phone",
		"lmit":        "limit",
		"period":      "per",
		"onerror":     "on-error",
		"TokenBucket": "token-bucket",
		"token":       "token-bucket",
		"clientIp":    "clientIP",
		"x":           "",
		"i":           "",
		"":            "",
		"telephone":   "",
		"ctx":         "",
	} {
		if got := Nearest(word, valid); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("word", nil); got != "" {
		t.Errorf("nothing is near, found %q", got)
	}
}

// TestJoin joins more messages than Join prints.
func TestJoin(t *testing.T) {
	messages := make([]Message, 150)
	for i := range messages {
		messages[i] = Message{File: "x.go", Span: Span{Line: i + 1, Column: 1}, Text: "wrong"}
	}
	lines := strings.Split(Join(messages), "\n")
	if len(lines) != 101 || lines[99] != "x.go:100:1: wrong" || lines[100] != "and 50 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	if got := Join(messages[:1]); got != "x.go:1:1: wrong" {
		t.Errorf("one is %q", got)
	}
}
