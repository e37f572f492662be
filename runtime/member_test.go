package runtime

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Members are short, differ where their texts do, and have no zero bytes, which end an argument of the script.
func TestMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (member(a) == member(b)) != (a == b) {
			t.Errorf("%q gives %q, %q gives %q", a, member(a), b, member(b))
		}
		if m := member(a); len(m) > maxMember || strings.ContainsRune(m, 0) {
			t.Errorf("%q gives %q", a, m)
		}
	})
	if m := member("13800138000"); m != "13800138000" {
		t.Errorf("a short one became %q", m)
	}
}
