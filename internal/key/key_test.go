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
		long:                     strings.Repeat("a", 94) + "%#c12cb024a2e5551cca0e08fce8f1c5e3", // from sha256sum
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}

// checkSubject checks the properties of subjects that keys rely on.
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

// TestEscapeIsInjective expects different subjects for different texts, even if one text looks like the escaped or cut form of the
// other, and expects Unescape to return every text that was not cut.
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

// TestIsEscapedAfterCut expects IsEscaped to accept cut texts of Escape, and to refuse cut texts with another head or hash.
func TestIsEscapedAfterCut(t *testing.T) {
	for n := range 3 { // the cut goes through an escape at different places
		if shown := Escape(strings.Repeat("a", n) + strings.Repeat("{", 100)); !IsEscaped(shown) {
			t.Errorf("%s is not recognized as a result of Escape", shown)
		}
	}
	whole := Escape(strings.Repeat("a", 200))
	head, hash, _ := strings.Cut(whole, cut)
	for _, other := range []string{
		head + cut + strings.ToUpper(hash), head + cut + hash[2:], head + cut + "g" + hash[1:], head + "{" + cut + hash[1:],
		head + cut + hash + "00", "%" + head[1:] + cut + hash, "a" + whole, cut, "%" + cut,
	} {
		if IsEscaped(other) {
			t.Errorf("%s is taken for a result of Escape", other)
		}
	}
	for _, short := range []string{cut + hash, "a" + cut + hash} { // the heads are shorter than an escape
		_ = IsEscaped(short)
	}
}
