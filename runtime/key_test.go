package runtime

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	long := strings.Repeat("a", 129)
	for text, want := range map[string]string{
		"+8613800138000":         "+8613800138000",
		"two words":              "two words",
		"José":                   "José",
		"Jose\u0301":             "Jose\u0301",
		"a}b{c":                  "a%7Db%7Bc",
		"100%":                   "100%25",
		"%all":                   "%25all",
		"a\nb\x00":               "a%0Ab%00",
		"\xff":                   "%FF",
		"\u2028":                 "%E2%80%A8",
		strings.Repeat("a", 128): strings.Repeat("a", 128),
		long:                     strings.Repeat("a", 94) + "%#c12cb024a2e5551cca0e08fce8f1c5e3", // as sha256sum has it
	} {
		if got := canonical(text); got != want {
			t.Errorf("canonical(%q) = %q, want %q", text, got, want)
		}
	}
}

// checkSubject checks what every key relies on.
func checkSubject(t interface{ Fatalf(string, ...any) }, text, subject string) {
	switch {
	case len(subject) > maxSubject:
		t.Fatalf("canonical(%q) has %d bytes", text, len(subject))
	case strings.ContainsAny(subject, "{}\n\r\x00") || !utf8.ValidString(subject):
		t.Fatalf("canonical(%q) = %q, which can forge a key or a log line", text, subject)
	case text != "" && (subject == everybody || subject == ""):
		t.Fatalf("canonical(%q) = %q, which stands for everybody", text, subject)
	}
}

// Two texts never give one subject, also where one is made to look like the other's escaped or cut form.
func TestCanonicalIsInjective(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a%#{}0-9A-F]{0,8}`),
		rapid.StringMatching(`a{90,130}(%#)?[0-9a-f]{0,32}`),
		rapid.Map(rapid.StringMatching(`a{100,160}`), canonical),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 200), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		checkSubject(t, a, canonical(a))
		if a != b && canonical(a) == canonical(b) {
			t.Fatalf("%q and %q both give %q", a, b, canonical(a))
		}
	})
}

func FuzzCanonical(f *testing.F) {
	f.Add("a", "b")
	f.Add("%41", "A")
	f.Add(strings.Repeat("x", 200), canonical(strings.Repeat("x", 200)))
	f.Fuzz(func(t *testing.T, a, b string) {
		checkSubject(t, a, canonical(a))
		if a != b && canonical(a) == canonical(b) {
			t.Fatalf("%q and %q both give %q", a, b, canonical(a))
		}
	})
}

// FuzzKey puts two lists of arguments into the templates {a}:{b} and {a}-{b}, as generated code does.
func FuzzKey(f *testing.F) {
	f.Add("x", "y:z", "x:y", "z")
	f.Add(`x\`, `:y`, `x\:`, `y`)
	f.Add("", ":", ":", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, literal := range []string{":", ":-"} {
			one, two := canonical(Part(a)+literal+b), canonical(Part(c)+literal+d)
			if (a != c || b != d) && one == two {
				t.Fatalf("(%q, %q) and (%q, %q) both give %q", a, b, c, d, one)
			}
		}
	})
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Ann Example":             "Ann Example",
		"100%":                    "100%",
		"日本":                      "日本",
		"a\nb":                    `a\nb`,
		"\x1b[31mred":             `\x1b[31mred`,
		"\xff":                    `\xff`,
		"\u202egnp.exe":           `\u202egnp.exe`,
		strings.Repeat("é", 100):  strings.Repeat("é", 64) + "…",
		strings.Repeat("a", 1000): strings.Repeat("a", 128) + "…",
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

type names []string

func (n names) Error() string { return "names" }

func TestIsNil(t *testing.T) {
	var none *time.Time
	var list names
	for _, c := range []struct {
		v    any
		want bool
	}{
		{nil, true}, {none, true}, {error(list), true}, {map[string]int(nil), true}, {(func())(nil), true}, {(chan int)(nil), true},
		{new(int), false}, {0, false}, {"", false}, {error(names{}), false}, {struct{ p *int }{}, false},
	} {
		if got := IsNil(c.v); got != c.want {
			t.Errorf("%T %v: got %t", c.v, c.v, got)
		}
	}
	var e error = &KeyError{}
	if n := testing.AllocsPerRun(100, func() { IsNil(e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
