package annotations

import (
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// inside checks that every error is one line and stands inside the text at position 1, or just after its end.
func inside(t *testing.T, text string, errs Diagnostics) {
	for _, e := range errs {
		if e.Pos < 1 || int(e.Pos) > 1+len(text) {
			t.Errorf("%q: position %d is outside: %s", text, e.Pos, e.Msg)
		}
		if e.Msg == "" || strings.ContainsAny(e.Msg, "\n\r") {
			t.Errorf("%q: the message %q is not one line", text, e.Msg)
		}
	}
}

// respell writes d with all values quoted as Go strings.
func respell(d Directive) string {
	line := "//ratelimit:" + d.Verb.Value
	for _, a := range d.Args {
		switch {
		case a.Value.IsZero():
			line += " " + a.Name.Value
		case a.Name.IsZero():
			line += " " + a.Value.Value
		default:
			line += " " + a.Name.Value + "=" + strconv.Quote(a.Value.Value)
		}
	}
	return line
}

func directives(g Group) []Directive {
	var ds []Directive
	for _, r := range g.Rules {
		ds = append(ds, r.Directive)
	}
	for _, d := range []Directive{g.Wrap, g.Skip, g.Fallback} {
		if !d.IsZero() {
			ds = append(ds, d)
		}
	}
	return ds
}

// FuzzParse checks that Parse does not panic, that errors stand inside the comment, that no directive which go/ast accepts is
// ignored, and that a directive without errors stays the same when it is written and read again.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"rules.txt", "verbs.txt", "nearmisses.txt"} {
		src, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(src)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") && !marker.MatchString(line) {
				f.Add(line)
			}
		}
	}
	f.Add("//ratelimit:rule key=`{m[\"a\"]}` limit=1_000 per=1w2d message=\"caf\\u00e9 {{\\x41}}\" prepay")
	f.Add("//ratelimit:wrap name=A tz=UTC")
	isColon := regexp.MustCompile(colon).MatchString
	f.Fuzz(func(t *testing.T, line string) {
		if !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "//") && strings.Contains(line, "\n") {
			return // no comment
		}
		g, errs := Parse(comments(line))
		inside(t, line, errs)
		if len(errs) > 0 && !isColon(line) {
			t.Errorf("%q has no colon, but %v", line, errs)
		}
		read := directives(g)
		if d, ok := ast.ParseDirective(1, line); ok && d.Tool == tool && len(errs) == 0 &&
			(len(read) != 1 || read[0].Verb.Value != d.Name) {
			t.Errorf("%q is a directive, but was read as %+v", line, read)
		}
		if len(errs) > 0 {
			return
		}
		for _, d := range read {
			again, errs := Parse(comments(respell(d)))
			if len(errs) > 0 || !reflect.DeepEqual(all(again), all(g)) {
				t.Errorf("%q is\n%+v, but as %q it is\n%+v, %v", line, all(g), respell(d), all(again), errs)
			}
		}
	})
}

// FuzzLookalike disguises a directive by one letter, or by a character that nobody sees, in place of another character or beside it. It
// expects Parse to read the rule or to report the line.
func FuzzLookalike(f *testing.F) {
	for _, r := range "xéаｒ\u200b\u00ad\u0301" {
		f.Add(2, r, true)
		f.Add(6, r, false)
	}
	f.Add(11, '：', true)
	f.Add(11, 'ː', false)
	f.Add(12, '\u3000', false)
	isColon := regexp.MustCompile(colon).MatchString
	f.Fuzz(func(t *testing.T, at int, r rune, replace bool) {
		line, name := "//ratelimit:rule limit=1 per=1m", len("//ratelimit")
		alike := isColon(string(r)) || (unicode.IsLetter(r) || unicode.In(r, unicode.Cf, unicode.M)) && !(at == name && replace)
		if at < len("//") || at >= len(line) || unicode.IsControl(r) || at <= name && !alike {
			return
		}
		behind := line[at:]
		if replace {
			behind = behind[1:]
		}
		line = line[:at] + string(r) + behind
		if g, errs := Parse(comments(line)); len(errs) == 0 && len(g.Rules) != 1 {
			t.Errorf("%q is neither read nor reported", line)
		}
	})
}

// spellTemplate is the inverse of parseTemplate.
func spellTemplate(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch e := p.Island.Value; {
		case e == "":
			b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Literal))
		case e[0] == '{':
			b.WriteString("{ " + e + " }")
		default:
			b.WriteString("{" + e + "}")
		}
	}
	return b.String()
}

// FuzzTemplate checks that parsing does not panic, that errors stand inside the template, that the positions of its
// expressions are right, and that its parts spell the template again.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"", "sms:{phone}", "{a}{b}", "{{{id}}}", `{tenant}-{lookup["}"]}`, `{ {"a": 1}["a"] }`, "{{}}", "{f({a: [1, 2]})}",
		"{", "}", "{}", "{ }", "{a[}", "{a)}", `{"}`, `{"\"}"}`, "{`\\`}", "é{é}é", "{a}}}", "{{a}", "x{'}'}\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var p parser
		tmpl := p.parseTemplate(Text{Value: s, Pos: 1})
		inside(t, s, p.errs)
		literal := false
		for _, part := range tmpl.Parts {
			if isIsland := part.Literal == ""; isIsland && part.Island.Value != s[part.Island.Pos-1:][:len(part.Island.Value)] || !isIsland && literal {
				t.Errorf("%q has the part %+v", s, part)
			}
			literal = part.Literal != ""
		}
		if len(p.errs) > 0 {
			return
		}
		again := p.parseTemplate(Text{Value: spellTemplate(tmpl.Parts), Pos: 1})
		if len(p.errs) > 0 || !reflect.DeepEqual(bareTemplate(again).Parts, bareTemplate(tmpl).Parts) {
			t.Errorf("%q has the parts %+v, but %q has %+v, %v", s, tmpl.Parts, again.Value, again.Parts, p.errs)
		}
	})
}
