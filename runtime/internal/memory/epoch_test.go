package memory

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// A member that has not been admitted is unknown on any clock, also on one that a test starts at the epoch or before.
func TestUnknownMembersBeforeTheEpoch(t *testing.T) {
	for _, now := range []int64{-62135596800000000, -1, 0, 99, 100} {
		s := New((&hand{now: now}).time, 10)
		rule := newRule(decide.Members, "r", 100)
		for i, member := range []string{"a", "b", "c"} {
			call := ask("s", 1, rule)
			call.Claims[0].Member = member
			expect(t, s, call, i == 0)
		}
	}
}
