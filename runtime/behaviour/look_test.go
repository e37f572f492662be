package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// look looks at the only count of a request.
func (s *subject) look(t *testing.T, q ratelimit.Request) engine.Looked {
	t.Helper()
	rules, err := ratelimit.Prepare("", q.Rule)
	if err != nil {
		t.Fatal(err)
	}
	machine, rule := (*decide.Limiter)(s.limiter), (*decide.Rules)(rules).All[0]
	subject := machine.Subject(rule.PlainKeys, q.Key)
	all, err := machine.Look(context.Background(), machine.InForce(rule, q.Key, subject), subject)
	if err != nil || len(all) != 1 {
		t.Fatalf("looking finds %+v, %v", all, err)
	}
	return all[0]
}

// watched are rules of each kind with five permits, which come back later than any test ends.
func (s *subject) watched() []ratelimit.Rule {
	return s.known(
		window("sliding", 5, ratelimit.SlidingWindow), ratelimit.Rule{Name: "amounts", Limit: 5, Per: time.Hour, Amounts: true},
		window("fixed", 5, ratelimit.FixedWindow), ratelimit.Rule{Name: "calendar", Limit: 5, Cron: yearly},
		window("counter", 5, ratelimit.SlidingCounter),
		ratelimit.Rule{Name: "bucket", Limit: 5, Per: 24 * time.Hour, Algorithm: ratelimit.TokenBucket},
		ratelimit.Rule{Name: "leaky", Limit: 5, Per: 24 * time.Hour, Algorithm: ratelimit.LeakyBucket},
		ratelimit.Rule{Name: "prepaid", Limit: 5, Burst: 5, Per: 24 * time.Hour, Algorithm: ratelimit.TokenBucket, Prepay: true},
		ratelimit.Rule{Name: "members", Limit: 5, Per: time.Hour, Distinct: "{m}"},
		ratelimit.Rule{Name: "members-a-day", Limit: 5, Cron: yearly, Distinct: "{m}"},
	)
}

// Who looks at a count sees what a peek sees, and besides that how far the count is beyond its limit. Looking changes nothing.
func TestLookSeesWhatAPeekSees(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.watched() {
			q := ratelimit.Request{Rule: rule, Key: "ann", Member: "nobody"}
			for i := range 8 {
				seen, d := s.look(t, q), s.peek(t, q)
				quota := d.Quotas[0]
				if left := max(0, seen.Room); left != quota.Remaining {
					t.Errorf("%s after %d: room for %d, a peek says %d", rule.Name, i, seen.Room, quota.Remaining)
				}
				next := d.At
				if !d.Allowed {
					next = d.At.Add(d.RetryAfter)
				}
				if full := d.At.Add(quota.Reset); d.Allowed != !seen.Next.After(seen.Now) || !d.Allowed && !seen.Next.Equal(next) || quota.Reset > 0 && !seen.Full.Equal(full) {
					t.Errorf("%s after %d: the next permit at %v, all at %v; a peek says %v and %v", rule.Name, i, seen.Next, seen.Full, next, full)
				}
				if quota.More < 0 || quota.More > quota.Reset || (quota.More > 0) != (quota.Reset > 0) {
					t.Errorf("%s after %d: more in %v, all in %v", rule.Name, i, quota.More, quota.Reset)
				}
				if left := quota.Remaining; !d.Allowed && (left != 0 || quota.More != d.RetryAfter || d.Violations[0].More != d.RetryAfter) {
					t.Errorf("%s after %d: of %d permits more in %v, and in %v after the refusal; it says %v", rule.Name, i, left, quota.More, d.Violations[0].More, d.RetryAfter)
				}
				take := q
				take.Member = fmt.Sprint(i)
				if d := s.allow(t, take); !d.Allowed && d.Violations[0].More != d.RetryAfter { // without a report
					t.Errorf("%s after %d: more in %v after a refusal, which says %v", rule.Name, i, d.Violations[0].More, d.RetryAfter)
				}
			}
		}
	})
}

// What is used beyond a limit is told: after the limit was lowered, and after permits were taken that did not fit.
func TestLookBeyondTheLimit(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		for _, rule := range s.watched() {
			q := ratelimit.Request{Rule: rule, Key: "ann"}
			for i := range min(4, max(1, rule.Burst, s.peek(t, ratelimit.Request{Rule: rule, Key: "new", Member: "m"}).Quotas[0].Remaining)) {
				q.Member = fmt.Sprint(i)
				s.admit(t, q)
			}
			used := max(rule.Burst, capacity(rule)) - s.look(t, q).Room
			if rule.Distinct == "" {
				if err := s.limiter.Give(t.Context(), -5, q); err != nil {
					t.Fatal(err)
				}
				used += 5
			}
			if room := capacity(rule) - used; s.look(t, q).Room != room {
				t.Errorf("%s: room for %d, want %d", rule.Name, s.look(t, q).Room, room)
			}
			if isBucket(rule) {
				continue // with another limit it has another rate
			}
			if q.Rule.Limit = 1; s.look(t, q).Room != 1-used {
				t.Errorf("%s at limit 1: room for %d of %d used", rule.Name, s.look(t, q).Room, used)
			}
		}
	})
}

// capacity is how many permits a key can have at once.
func capacity(rule ratelimit.Rule) int64 {
	if rule.Algorithm == ratelimit.LeakyBucket {
		return 1
	}
	return rule.Limit
}

// A block that a rule began is told, with its number, apart from when its count has the next permit; and it is listed while it is in force.
func TestLookAtBlocks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{
			Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Block: 3 * time.Second, BlockMax: 12 * time.Second}, Key: "eve {x}",
		}
		other := q
		other.Key = "adam"
		s.admit(t, q)
		s.admit(t, other)
		next := s.look(t, q).Next
		s.requireBlocks(t, nil)
		for i, length := range []time.Duration{3, 6} {
			d := s.refuse(t, q)
			seen := s.look(t, q)
			until := d.At.Add(length * time.Second)
			if !seen.BlockedSince.Equal(d.At) || !seen.BlockedUntil.Equal(until) || seen.Blocks != i+1 || !seen.Next.Equal(next) || seen.Room != 0 {
				t.Errorf("block %d from %v to %v: %+v", i+1, d.At, until, seen)
			}
			s.requireBlocks(t, &seen)
			s.pass(length * time.Second)
			if seen := s.look(t, q); !seen.BlockedUntil.IsZero() || seen.Blocks != 0 || !seen.Next.Equal(next) {
				t.Errorf("after block %d: %+v", i+1, seen)
			}
			s.requireBlocks(t, nil)
		}
		s.refuse(t, q)
		s.refuse(t, other)
		if some, whole, err := s.store.Blocks(t.Context(), ratelimit.DefaultPrefix, 1); len(some) != 1 || whole || err != nil {
			t.Errorf("of two blocks: %+v, all %v, %v", some, whole, err)
		}
	})
}

// requireBlocks expects the block that was seen, or none.
func (s *subject) requireBlocks(t *testing.T, seen *engine.Looked) {
	t.Helper()
	all, whole, err := s.store.Blocks(t.Context(), ratelimit.DefaultPrefix, 10)
	if err != nil || !whole {
		t.Fatal(all, whole, err)
	}
	var want []backend.Block
	if seen != nil {
		want = []backend.Block{{Rule: "r", Tag: "1h", Subject: "eve %7Bx%7D", Since: seen.BlockedSince, Until: seen.BlockedUntil}}
	}
	if fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("the blocks are %+v, want %+v", all, want)
	}
	if all, whole, err := s.store.Blocks(t.Context(), "other", 10); len(all) > 0 || !whole || err != nil {
		t.Errorf("another prefix has %+v, all %v, %v", all, whole, err)
	}
}

// The end of a pause is told, and the count as it is apart from the pause.
func TestLookAtAPause(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 3, Per: time.Hour, Pausable: true}, Key: "ann"}
		s.admit(t, q)
		if err := s.limiter.Pause(t.Context(), time.Hour, q); err != nil {
			t.Fatal(err)
		}
		d := s.refuse(t, q)
		seen := s.look(t, q)
		if !seen.PausedUntil.Equal(d.At.Add(d.RetryAfter)) || seen.Next.After(seen.Now) || seen.Room != 2 || !seen.BlockedUntil.IsZero() {
			t.Errorf("%+v of a key that is refused by %+v", seen, d)
		}
		if err := s.limiter.Resume(t.Context(), q); err != nil || !s.look(t, q).PausedUntil.IsZero() {
			t.Errorf("after Resume: %v, %+v", err, s.look(t, q))
		}
	})
}

// Calls that run are told: how many permits they have, until when without a renewal, and in which process.
func TestLookAtRunningCalls(t *testing.T) {
	onEveryStore(t, func(t *testing.T, s *subject) {
		q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour, Algorithm: ratelimit.Concurrency}, Key: "ann"}
		if seen := s.look(t, q); len(seen.Running) > 0 || seen.Room != 5 {
			t.Errorf("before any call: %+v", seen)
		}
		q.Cost = 2
		one, two := s.admit(t, q), s.admit(t, q)
		seen := s.look(t, q)
		if len(seen.Running) != 2 || seen.Room != 1 || seen.Next.IsZero() {
			t.Fatalf("two calls of 2 permits: %+v", seen)
		}
		for _, r := range seen.Running {
			if left := r.Until.Sub(seen.Now); r.Permits != 2 || left <= 0 || left > time.Hour {
				t.Errorf("a call of 2 permits for an hour: %+v", r)
			}
			if p := fleet.CallerOf(r.ID, s.processes(t)); p == nil {
				t.Errorf("nobody knows the process of %x", r.ID)
			}
		}
		if p := fleet.CallerOf(seen.Running[0].ID+1<<40, s.processes(t)); p != nil {
			t.Errorf("another process is %+v", p)
		}
		q.Cost = 1
		if s.admit(t, q); !s.look(t, q).Next.IsZero() {
			t.Errorf("nobody knows when there are permits again: %+v", s.look(t, q))
		}
		if err := errors.Join(one.Release(t.Context()), two.Release(t.Context())); err != nil || s.look(t, q).Room != 4 {
			t.Errorf("after the calls: %v, %+v", err, s.look(t, q))
		}
	})
}

// processes returns the processes of the fleet, as soon as this one is among them.
func (s *subject) processes(t *testing.T) []fleet.Process {
	t.Helper()
	for {
		all, err := (*decide.Limiter)(s.limiter).Fleet().Processes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 {
			return all
		}
		time.Sleep(time.Millisecond)
	}
}

// A rule of instance scope has the counts of this process, and a rule of limit 0 admits nothing.
func TestLookAtOtherRules(t *testing.T) {
	onPlainToo(t, func(t *testing.T, s *subject) {
		here := ratelimit.Request{Rule: window("here", 5, ratelimit.SlidingWindow), Key: "ann"}
		here.Rule.Scope = ratelimit.ScopeInstance
		s.admit(t, here)
		if seen := s.look(t, here); seen.Room != 4 {
			t.Errorf("after one of 5: %+v", seen)
		}
		none := ratelimit.Request{Rule: window("none", 5, s.window), Key: "ann"}
		s.admit(t, none)
		zero := int64(0)
		if err := s.limiter.Overrides().SetLocal("none", ratelimit.Override{Limit: &zero}); err != nil {
			t.Fatal(err)
		}
		if seen := s.look(t, none); seen.Room != -1 || !seen.Next.IsZero() {
			t.Errorf("after one of 0: %+v", seen)
		}
	})
}

// A store on servers lets those who look send commands to each; a store in memory has none.
func TestServersOfAStore(t *testing.T) {
	if err := inMemory(newClock()).store.Servers(t.Context(), func(context.Context, string, fleet.Do) error { return errors.New("called") }); err != nil {
		t.Error("memory:", err)
	}
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		asked := 0
		err := s.store.Servers(t.Context(), func(ctx context.Context, name string, do fleet.Do) error {
			asked++
			replies, err := do(ctx, fleet.Command{"SET", "k", "v"}, fleet.Command{"GET", "k"}, fleet.Command{"GET", "none"})
			if err != nil || name != "" || replies[1] != "v" || replies[2] != nil {
				t.Errorf("%q says %v, %v", name, replies, err)
			}
			_, err = do(ctx, fleet.Command{"GET", "k"}, fleet.Command{"LPUSH", "k", "v"})
			return err
		})
		if asked != 1 || err == nil {
			t.Errorf("asked %d times, error %v", asked, err)
		}
		forged := "ratelimit:r:{a\nb}:block:1h"
		if client := connect(t, server.Addr); client.Set(t.Context(), forged, "\x01"+strings.Repeat("\x00\x00\x00\x00\x00\x00\x3e\x43", 2), 0).Err() != nil {
			t.Fatal("the forged block cannot be written")
		}
		if all, whole, err := s.store.Blocks(t.Context(), ratelimit.DefaultPrefix, 10); len(all) > 0 || !whole || err != nil {
			t.Errorf("a forged block: %+v, all %v, %v", all, whole, err)
		}
		server.Do("ACL SETUSER default -scan")
		_, whole, err := s.store.Blocks(t.Context(), ratelimit.DefaultPrefix, 10)
		denied, ok := errors.AsType[*backend.DeniedError](err)
		if s.knows(ratelimit.Rule{Limit: 1, Per: time.Hour, Block: time.Second}) && (!ok || denied.Command != "SCAN" || whole) {
			t.Errorf("without the permission to search: all %v, %v", whole, err)
		}
	})
}

// Each master of a cluster is asked, and has its blocks.
func TestServersOfACluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	s := onStores(func() ratelimit.Store { return scripted(connectCluster(t, servers)) })
	names := make(chan string, 10)
	err := s.store.Servers(t.Context(), func(ctx context.Context, name string, do fleet.Do) error {
		names <- name
		_, err := do(ctx, fleet.Command{"DBSIZE"})
		return err
	})
	asked := map[string]bool{}
	for close(names); len(names) > 0; {
		asked[<-names] = true
	}
	if err != nil || len(asked) != 3 || asked[""] {
		t.Errorf("asked %v, error %v", asked, err)
	}
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour, Block: time.Hour}}
	for i := range 20 {
		q.Key = fmt.Sprint("k", i)
		s.admit(t, q)
		s.refuse(t, q)
	}
	if all, whole, err := s.store.Blocks(t.Context(), ratelimit.DefaultPrefix, 100); len(all) != 20 || !whole || err != nil {
		t.Errorf("%d blocks, all %v, %v", len(all), whole, err)
	}
}

// A store whose memory is at its bound says so by the type of its error, alone and among other calls of one run.
func TestFullMemoryIsRecognized(t *testing.T) {
	requireFull := func(t *testing.T, s *subject) {
		for _, calls := range []int{1, 20} {
			failed := make(chan error, calls)
			for i := range calls {
				go func() {
					_, err := s.limiter.Allow(t.Context(), ratelimit.Request{Rule: window("r", 5, s.window), Key: fmt.Sprint("k", i)})
					failed <- err
				}()
			}
			for range calls {
				if err := <-failed; err == nil || !errors.As(err, new(*backend.FullError)) {
					t.Errorf("of %d calls one has the error %v", calls, err)
				}
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		store := memstore.New(memstore.WithMaxKeys(1))
		s := &subject{limiter: ratelimit.New(store), store: store}
		s.admit(t, ratelimit.Request{Rule: window("r", 5, s.window), Key: "only"})
		requireFull(t, s)
	})
	onServers(t, func(t *testing.T, server *redistest.Server, s *subject) {
		s.admit(t, ratelimit.Request{Rule: window("r", 5, s.window), Key: "first"}) // loads the script
		server.Do("CONFIG SET maxmemory 1")
		requireFull(t, s)
	})
}
