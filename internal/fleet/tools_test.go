package fleet_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// The prefix of every key of a fleet is found, whatever the prefix is, and no other key has one.
func TestPrefixOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := key.Escape(rapid.SampledFrom([]string{"", "a", "a.fleet", "x.seen:", "shop:{", "%"}).Draw(t, "prefix") + rapid.String().Draw(t, "more"))
		for _, k := range fleet.KeysOf(prefix) {
			if got, ok := fleet.PrefixOf(k); !ok || got != prefix {
				t.Errorf("%q is of %q, %t; want %q", k, got, ok, prefix)
			}
		}
		for _, k := range []string{prefix, key.State(prefix, "r", "a", "1m"), prefix + ".fleet:{}:settings", prefix + ".seen:{x" + prefix + "}:rules", strings.Repeat(":{", 3)} {
			if got, ok := fleet.PrefixOf(k); ok {
				t.Errorf("%q is of %q", k, got)
			}
		}
	})
}
