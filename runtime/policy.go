package ratelimit

import (
	"fmt"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// FailurePolicy is what happens to a call that the store fails to decide, because the store cannot be reached, is full, or answers with an
// error. The zero value is DefaultPolicy.
//
// Under FailLocal a limiter keeps its own counts until they expire, even after the store is back. So each process gives a subject at most
// one more limit in a window, however often the store fails. If the limiter dropped these counts, each outage would give a subject a whole
// new limit. For these counts a limiter has as much room as its store in memory; on Redis, 1,000,000 counts and 256 MiB. A call for which that
// is not enough fails with a *StoreError.
type FailurePolicy uint32

const (
	DefaultPolicy = FailurePolicy(decide.DefaultPolicy) // of a rule: the limiter's; of a limiter: FailClosed
	FailClosed    = FailurePolicy(decide.FailClosed)    // the call fails with a *StoreError; the directives' word is deny
	FailOpen      = FailurePolicy(decide.FailOpen)      // the call passes; the directives' word is allow
	FailLocal     = FailurePolicy(decide.FailLocal)     // this limiter counts in this process, apart from the store; the directives' word is local
)

// FailLocalShare returns FailLocal for a fleet of n processes. While the store fails, each process admits max(1, limit / n) permits, so the
// fleet admits at most max(limit, n). A call that costs more than its process may admit fails with a *StoreError. If it is the limiter's
// policy, its n is also that of rules with FailLocal. An n below 1 means 1, and an n above 10,000,000 means 10,000,000.
func FailLocalShare(n int) FailurePolicy {
	return FailurePolicy(decide.FailLocal.Among(min(max(n, 1), 10_000_000)))
}

// String returns the directives' word: "deny", "allow" or "local". It returns "" for DefaultPolicy, and a text such as "local of 3" for
// FailLocalShare.
func (p FailurePolicy) String() string {
	of := decide.Policy(p)
	s := word("FailurePolicy", uint8(of.Base()), "", "deny", "allow", "local")
	if of.Share() > 1 {
		s += fmt.Sprintf(" of %d", of.Share())
	}
	return s
}
