package key

import (
	"testing"

	"pgregory.net/rapid"
)

// Split is the inverse of State and Block for all parts, and refuses the keys of free places.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix, subject := Escape(rapid.String().Draw(t, "prefix")), Subject(rapid.String().Draw(t, "subject"))
		name := rapid.StringMatching(`[a-zA-Z.:#]{1,9}`).Draw(t, "name")
		tag := rapid.SampledFrom([]string{"1m", "fixed:1m:{phone}", "cron:@daily:{a}:{b}"}).Draw(t, "tag")
		state := State(prefix, name, subject, tag)
		want := Parts{prefix + ":" + name, subject, tag, false}
		if p, ok := Split(state); !ok || p != want {
			t.Fatalf("%s has the parts %+v, %t", state, p, ok)
		}
		want.IsBlock = true
		if p, ok := Split(BlockOf(state)); !ok || p != want {
			t.Fatalf("%s has the parts %+v, %t", BlockOf(state), p, ok)
		}
		if p, ok := Split(FreeOf(state)); ok {
			t.Fatalf("%s counts as a state: %+v", FreeOf(state), p)
		}
		if BlockOf(state) != State(prefix, name, subject, "block:"+tag) || FreeOf(state) != State(prefix, name, subject, "free-places:"+tag) {
			t.Fatalf("%s has the block %s and the free places %s", state, BlockOf(state), FreeOf(state))
		}
	})
	for _, key := range []string{"", "p:rules", "p:r:{s}", "p:r:s}:1m"} {
		if p, ok := Split(key); ok {
			t.Errorf("%q counts as a state: %+v", key, p)
		}
	}
}
