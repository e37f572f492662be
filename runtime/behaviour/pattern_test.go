package behaviour_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// matching returns a request of the keys that a pattern matches.
func matching(rule, match string) ratelimit.Request {
	return ratelimit.Request{Rule: ratelimit.Rule{Name: rule}, Match: match}
}

// refuseUntil fails the test unless a call is refused by a block or a pause with an end in about d.
func (s *subject) refuseUntil(t *testing.T, d time.Duration, by ratelimit.Source, q ratelimit.Request) {
	t.Helper()
	if got := s.refuse(t, q); got.Source != by || got.RetryAfter > d || got.RetryAfter < d-10*time.Minute {
		t.Errorf("%s: got %+v; want a refusal by %s for %s", q.Key, got, by, d)
	}
}

// A block or a pause of a network or a text refuses the keys that it matches and no others, under the rules of its name or glob. Of several the longest
// end counts. Unblock and Resume end the one that they name.
func TestBlocksByPattern(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for by, do := range map[ratelimit.Source]struct {
			begin func(context.Context, time.Duration, ...ratelimit.Request) error
			end   func(context.Context, ...ratelimit.Request) error
		}{
			ratelimit.SourceBlock: {s.limiter.Block, s.limiter.Unblock},
			ratelimit.SourcePause: {s.limiter.Pause, s.limiter.Resume},
		} {
			begin := func(d time.Duration, q ratelimit.Request) {
				t.Helper()
				if err := do.begin(t.Context(), d, q); err != nil {
					t.Fatal(err)
				}
			}
			end := func(q ratelimit.Request) {
				t.Helper()
				if err := do.end(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			q := func(key string) ratelimit.Request {
				return ratelimit.Request{Rule: window("shop.login", 100, s.window), Key: key}
			}
			begin(time.Hour, matching("shop.login", "203.0.113.0/24"))
			begin(2*time.Hour, matching("shop.*", "203.0.0.0/16"))
			begin(time.Hour, matching("*", "2001:db8::/32"))
			begin(time.Hour, matching("*", "acme-*"))
			begin(3*time.Hour, ratelimit.Request{Rule: ratelimit.Rule{Name: "*"}, Key: "eve"})
			for key, d := range map[string]time.Duration{
				"203.0.113.7": 2 * time.Hour, "203.0.7.7": 2 * time.Hour, "::ffff:203.0.113.7": 2 * time.Hour, "203.0.113.0/28": 2 * time.Hour,
				"2001:db8:7::/64": time.Hour, "2001:db8::7": time.Hour, "acme-ann": time.Hour, "eve": 3 * time.Hour,
			} {
				s.refuseUntil(t, d, by, q(key))
			}
			for _, key := range []string{"203.1.113.7", "203.0.0.0/15", "2001:db9::1", "acme", "ann", "203.0.113.7,ann"} {
				s.admit(t, q(key))
			}
			other := q("203.0.113.7")
			other.Rule.Name = "mail"
			s.admit(t, other)
			end(matching("shop.*", "203.0.0.0/16"))
			s.refuseUntil(t, time.Hour, by, q("203.0.113.7"))
			s.admit(t, q("203.0.7.7"))
			end(matching("shop.login", "203.0.113.0/24"))
			end(matching("*", "acme-*"))
			end(ratelimit.Request{Rule: ratelimit.Rule{Name: "*"}, Key: "eve"})
			for _, key := range []string{"203.0.113.7", "acme-ann", "eve"} {
				s.admit(t, q(key))
			}
			end(matching("*", "2001:db8::/32"))
		}
		if all, err := s.limiter.Blocked(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("blocked are %+v, error %v", all, err)
		}
	})
}

// A call that a pause by pattern holds goes on when the pause is resumed, also under a rule that is Pausable.
func TestWaitThroughAPauseByPattern(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 10, Per: time.Second, Algorithm: ratelimit.TokenBucket, Pausable: true}, Key: "10.0.0.1"}
		pause := matching("*", "10.0.0.0/8")
		pause.Rule.Pausable = true
		if err := s.limiter.Pause(t.Context(), time.Hour, pause); err != nil {
			t.Fatal(err)
		}
		s.refuseUntil(t, time.Hour, ratelimit.SourcePause, q)
		if rules := s.limiter.Status().Rules; len(rules) != 1 || rules[0].Paused != 1 {
			t.Errorf("the status has %+v; want one pause of the rule", rules)
		}
		admitted := make(chan error)
		go func() {
			_, err := s.limiter.Wait(context.Background(), q)
			admitted <- err
		}()
		select {
		case err := <-admitted:
			t.Fatalf("a paused call is not held: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if err := s.limiter.Resume(t.Context(), pause); err != nil {
			t.Fatal(err)
		}
		if err := <-admitted; err != nil {
			t.Error(err)
		}
	})
}

// Networks match keys that are hashed. What a settlement takes from such a key counts by the limit that its network has.
func TestPatternsOfHashedKeys(t *testing.T) {
	secret := ratelimit.WithSubjectHash(bytes.Repeat([]byte("s"), 32))
	onPlainToo(t, func(t *testing.T, s *subject) {
		s.limiter = ratelimit.New(s.store, secret)
		rule := window("r", 1, s.window)
		q := ratelimit.Request{Rule: rule, Key: "10.0.0.1"}
		if err := s.limiter.Overrides().Set(t.Context(), "*", ratelimit.Override{Match: "10.0.0.0/24", Limit: new(int64(5))}); err != nil {
			t.Fatal(err)
		}
		d := s.admit(t, q)
		if err := d.Settle(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if left := s.peek(t, q).Quotas[0].Remaining; left != 1 {
			t.Errorf("%d are left after 4 of 5, want 1", left)
		}
		if err := s.limiter.Block(t.Context(), time.Hour, matching("r", "10.0.0.0/8")); err != nil {
			t.Fatal(err)
		}
		s.refuseUntil(t, time.Hour, ratelimit.SourceBlock, q)
		all, err := s.limiter.Blocked(t.Context())
		if err != nil || len(all) != 1 || all[0].Match != "10.0.0.0/8" || all[0].Key != "" || all[0].Rule != "r" {
			t.Errorf("blocked are %+v, error %v", all, err)
		}
	})
}

// Other processes follow settings by pattern as they follow others.
func TestPatternsInOtherProcesses(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		var processes []*ratelimit.Limiter
		for range 2 {
			processes = append(processes, ratelimit.New(redisstore.New(connect(t, server.Addr), redisstore.WithTimeout(time.Minute))))
		}
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 5, Per: time.Hour}, Key: "203.0.113.7"}
		follows := func(what string, is func(d ratelimit.Decision) bool) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				if d, err := processes[1].Peek(t.Context(), q); err != nil || time.Now().After(deadline) {
					t.Fatalf("%s: %+v, error %v", what, d, err)
				} else if is(d) {
					return
				}
			}
		}
		block := matching("log*", "203.0.113.0/24")
		err := errors.Join(processes[0].Block(t.Context(), time.Hour, block),
			processes[0].Overrides().Set(t.Context(), "*", ratelimit.Override{Match: "203.0.0.0/16", Limit: new(int64(9))}))
		if err != nil {
			t.Fatal(err)
		}
		follows("block", func(d ratelimit.Decision) bool { return d.Source == ratelimit.SourceBlock })
		if err := processes[0].Unblock(t.Context(), block); err != nil {
			t.Fatal(err)
		}
		follows("override", func(d ratelimit.Decision) bool { return d.Allowed && d.Quotas[0].Limit == 9 })
		if err := processes[0].Overrides().ClearMatch(t.Context(), "*", "203.0.0.0/16"); err != nil {
			t.Fatal(err)
		}
		follows("clear", func(d ratelimit.Decision) bool { return d.Quotas[0].Limit == 5 })
	})
}

// A limiter's own override takes the place of the store's for the same rule and network, until it ends or is cleared.
func TestLocalOverrideOfANetwork(t *testing.T) {
	c := newClock()
	s := inMemory(c)
	q := ratelimit.Request{Rule: window("r", 1, ratelimit.SlidingWindow), Key: "10.0.0.1"}
	limit := func(want int64) {
		t.Helper()
		if got := s.peek(t, q).Quotas[0].Limit; got != want {
			t.Errorf("the limit is %d, want %d", got, want)
		}
	}
	v := func(limit int64, until time.Time) ratelimit.Override {
		return ratelimit.Override{Match: "10.0.0.0/8", Limit: &limit, Until: until}
	}
	setRate(t, s.limiter, "r", v(3, time.Time{}))
	limit(3)
	override(t, s.limiter, "r", v(4, c.now().Add(time.Hour)))
	limit(4)
	setRate(t, s.limiter, "r", v(5, time.Time{}))
	limit(4)
	c.pass(time.Hour)
	limit(5)
	override(t, s.limiter, "*", v(6, time.Time{}))
	limit(5)
	s.limiter.Overrides().ClearLocalMatch("*", "10.0.0.0/8")
	override(t, s.limiter, "r", v(7, time.Time{}))
	limit(7)
	s.limiter.Overrides().ClearLocalMatch("r", "10.0.0.0/8")
	limit(5)
}
