package wrap

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// FuzzKey puts two lists of arguments into templates such as {a}:{b} and {a}-{b}, as generated code does.
func FuzzKey(f *testing.F) {
	f.Add("x", "y:z", "x:y", "z")
	f.Add(`x\`, `:y`, `x\:`, `y`)
	f.Add("", ":", ":", "")
	f.Add("x:", "y", `x\`, "y")
	f.Add("x-y", "z", "x", "y-z")
	f.Add(`x\`, "-y", "x", `-y`)
	f.Add("\xc3", "é", "\xc3é", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, literal := range []string{":", ":-", "-", "/x/", "é", "1", " ", "\uFFFD"} {
			part := func(s string) string { return Part(s, []rune(literal)[0]) }
			one, two := key.Escape(part(a)+literal+b), key.Escape(part(c)+literal+d)
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
	var e error = &ratelimit.KeyError{}
	if n := testing.AllocsPerRun(100, func() { IsNil(e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
