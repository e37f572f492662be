package key

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMember expects members that are short, that differ if their texts differ, and that have no zero bytes, which end the text of a
// claim in the script.
func TestMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (Member(a) == Member(b)) != (a == b) {
			t.Errorf("%q gives %q, %q gives %q", a, Member(a), b, Member(b))
		}
		if m := Member(a); len(m) > maxMember || strings.ContainsRune(m, 0) {
			t.Errorf("%q gives %q", a, m)
		}
	})
	for text, want := range map[string]string{
		"13800138000":            "13800138000",
		strings.Repeat("a", 129): "\x01\xc1\x2c\xb0\x24\xa2\xe5\x55\x1c\xca\x0e\x08\xfc\xe8", // from sha256sum
	} {
		if m := Member(text); m != want {
			t.Errorf("%q became %q, want %q", text, m, want)
		}
	}
}
