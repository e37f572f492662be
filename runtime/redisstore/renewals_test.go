package redisstore

import (
	"context"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

var running = &engine.Rule{Name: "run", Tag: "concurrency:3s", Kind: engine.Concurrency, Per: 3 * second}

// hold makes calls that hold a permit each.
func hold(t *testing.T, s *store, subject string, n int) (calls []engine.Call) {
	for i := range n {
		call := of(running, 1000, subject)
		call.Claims[0].ID, call.Claims[0].Renewed = uint64(i+1), true
		if v, err := s.Decide(t.Context(), &call); err != nil || !v.Admitted {
			t.Fatal(v, err)
		}
		calls = append(calls, call)
	}
	return calls
}

func inUse(t *testing.T, s *store, subject string) int64 {
	peek := of(running, 1000, subject)
	peek.Peek = true
	if _, err := s.Decide(t.Context(), &peek); err != nil {
		t.Fatal(err)
	}
	return 1000 - peek.Claims[0].Room
}

// However many permits a key has, the beat renews them by one claim, or by one for each mostRenewed calls. The next beat has nothing to renew.
func TestOneClaimRenewsAKey(t *testing.T) {
	s, server := open(t)
	hold(t, s, "a", 2*mostRenewed+1)
	hold(t, s, "b", 2)
	server.Do("CONFIG RESETSTAT")
	s.renew(t.Context(), "p", true)
	if n := commands(server, "pexpireat"); n != "4" {
		t.Errorf("%s claims renewed the permits of two keys, want 3 and 1", n)
	}
	server.Do("FLUSHDB") // what the store has lost is there again
	s.renew(t.Context(), "p", true)
	if a, b := inUse(t, s, "a"), inUse(t, s, "b"); a != 2*mostRenewed+1 || b != 2 {
		t.Errorf("%d and %d permits are taken after they were lost and renewed", a, b)
	}
	server.Do("CONFIG RESETSTAT")
	s.renew(t.Context(), "p", false)
	if n := scripts(server); n != 0 {
		t.Errorf("%d scripts renewed permits before their time", n)
	}
}

// The permits of calls that end while they are renewed are given back, and those of the others stay.
func TestCallsEndDuringARenewal(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	calls := hold(t, s, "a", 100)
	renewals := s.renewals.due("p", true)
	for i := range calls[:40] {
		calls[i].Undo()
		if err := s.Adjust(context.Background(), &calls[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range renewals {
		s.renewPermits(t.Context(), call)
	}
	if n := inUse(t, s, "a"); n != 60 {
		t.Errorf("%d permits are taken, want 60", n)
	}
	if n := len(s.renewals.permits); n != 60 {
		t.Errorf("%d permits are noted, want 60", n)
	}
}

// Permits that could not be given back are given back by one claim, too.
func TestOneClaimGivesBack(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	calls := hold(t, s, "a", mostRenewed)
	for i := range calls {
		calls[i].Undo()
		s.renewals.startGiveBack(&calls[i]) // and it fails
	}
	server.Do("CONFIG RESETSTAT")
	s.renew(t.Context(), "p", false)
	if n := scripts(server); n != 1 {
		t.Errorf("%d scripts gave the permits back", n)
	}
	if taken, noted := inUse(t, s, "a"), len(s.renewals.permits); taken != 0 || noted != 0 {
		t.Errorf("%d permits are taken, %d are noted", taken, noted)
	}
}
