package key

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEscape(t *testing.T) {
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
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}

// checkSubject checks what every key relies on.
func checkSubject(t interface{ Fatalf(string, ...any) }, text, subject string) {
	switch {
	case len(subject) > maxSubject:
		t.Fatalf("Escape(%q) has %d bytes", text, len(subject))
	case strings.ContainsAny(subject, "{}\n\r\x00") || !utf8.ValidString(subject):
		t.Fatalf("Escape(%q) = %q, which can forge a key or a log line", text, subject)
	case text != "" && (subject == everybody || subject == ""):
		t.Fatalf("Escape(%q) = %q, which stands for everybody", text, subject)
	}
}

// Two texts never give one subject, also where one is made to look like the other's escaped or cut form. What was not cut gives the text
// again.
func TestEscapeIsInjective(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a%#{}0-9A-F]{0,8}`),
		rapid.StringMatching(`a{90,130}(%#)?[0-9a-f]{0,32}`),
		rapid.Map(rapid.StringMatching(`a{100,160}`), Escape),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 200), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		checkSubject(t, a, Escape(a))
		if a != b && Escape(a) == Escape(b) {
			t.Fatalf("%q and %q both give %q", a, b, Escape(a))
		}
		if back, ok := Unescape(Escape(a)); ok == strings.Contains(Escape(a), cut) || ok && back != a {
			t.Fatalf("%q gives %q, which gives %q, %v", a, Escape(a), back, ok)
		}
		if !IsEscaped(Escape(a)) {
			t.Fatalf("%q gives %q, which is no escaped text", a, Escape(a))
		}
		if a != "" && IsEscaped(a) {
			checkSubject(t, a, a)
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("a", "b")
	f.Add("%41", "A")
	f.Add(strings.Repeat("x", 200), Escape(strings.Repeat("x", 200)))
	f.Fuzz(func(t *testing.T, a, b string) {
		checkSubject(t, a, Escape(a))
		if !IsEscaped(Escape(a)) {
			t.Fatalf("Escape(%q) = %q, which is no escaped text", a, Escape(a))
		}
		if a != "" && IsEscaped(a) {
			checkSubject(t, a, a)
		}
		if a != b && Escape(a) == Escape(b) {
			t.Fatalf("%q and %q both give %q", a, b, Escape(a))
		}
	})
}

// What is cut ends with a hash as Escape writes it.
func TestIsEscapedOfWhatIsCut(t *testing.T) {
	for n := range 3 { // where the cut goes through an escape
		if shown := Escape(strings.Repeat("a", n) + strings.Repeat("{", 100)); !IsEscaped(shown) {
			t.Errorf("%s is not one that Escape returns", shown)
		}
	}
	whole := Escape(strings.Repeat("a", 200))
	head, hash, _ := strings.Cut(whole, cut)
	for _, other := range []string{
		head + cut + strings.ToUpper(hash), head + cut + hash[2:], head + cut + "g" + hash[1:], head + "{" + cut + hash[1:],
		head + cut + hash + "00", "%" + head[1:] + cut + hash, "a" + whole, cut, "%" + cut,
	} {
		if IsEscaped(other) {
			t.Errorf("%s is one that Escape returns", other)
		}
	}
	for _, short := range []string{cut + hash, "a" + cut + hash} { // whose heads are shorter than an escape
		_ = IsEscaped(short)
	}
}
