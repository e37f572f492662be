package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
)

func openCluster(t testing.TB) *store {
	c := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, asking...).(*store)
}

func openRing(t testing.TB) *store {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, asking...).(*store)
}

// rooms returns how many permits each subject has left.
func rooms(t rapid.TB, s *store, call engine.Call) []int64 {
	peek := *call.Clone()
	peek.Peek, peek.UpTo, peek.Refused = true, false, false
	if _, err := s.Decide(context.Background(), &peek); err != nil {
		t.Fatal(err)
	}
	var left []int64
	for _, c := range peek.Claims {
		left = append(left, c.Room)
	}
	return left
}

// On several servers, a call is charged to all its rules or to none, and all refusing rules are reported.
func TestSpreadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*store{"cluster": openCluster(t), "ring": openRing(t)} {
		n := 0
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n++
				call := of(minute, 3, fmt.Sprint(n, "a"), fmt.Sprint(n, "b"), fmt.Sprint(n, "c"))
				call.Claims = append(call.Claims, of(combinable[0], 4, fmt.Sprint(n, "a")).Claims...)
				for range rapid.IntRange(1, 8).Draw(t, "calls") {
					checkSpread(t, s, call)
				}
			})
		})
	}
}

func checkSpread(t *rapid.T, s *store, all engine.Call) {
	call := engine.Call{Prefix: all.Prefix, UpTo: rapid.Bool().Draw(t, "up to"), Report: rapid.Bool().Draw(t, "report")}
	call.Refused = rapid.IntRange(0, 4).Draw(t, "refused elsewhere") == 0
	want, admitted := []int64(nil), true
	cost, taken := rapid.Int64Range(1, 3).Draw(t, "cost"), int64(0)
	before, one := rooms(t, s, all), rapid.IntRange(0, len(all.Claims)-1).Draw(t, "one")
	for i, c := range all.Claims {
		if rapid.Bool().Draw(t, "wanted") || i == one {
			c.Cost = cost
			call.Claims = append(call.Claims, c)
			want = append(want, before[i])
		}
	}
	taken = cost
	for _, room := range want {
		if call.UpTo {
			taken = min(taken, room)
		} else if room < cost {
			taken = 0
		}
	}
	if call.Refused {
		taken = 0
	}
	admitted = taken > 0
	v, err := s.Decide(context.Background(), &call)
	if err != nil || v.Admitted != admitted || call.UpTo && v.Taken != taken {
		t.Fatalf("got %+v, %v, want %t and %d of rooms %v for %+v", v, err, admitted, taken, want, call)
	}
	if !admitted && v.At != 0 {
		t.Fatalf("a refusal has a time: %+v", v)
	}
	for i, room := range rooms(t, s, call) {
		c := call.Claims[i]
		asked := cost
		if call.UpTo {
			asked = 1
		}
		if room != want[i]-taken || c.Charged != taken || c.Refused != (want[i] < asked) || call.Report && c.Room != room {
			t.Fatalf("room %d was %d, taken %d, claim %+v", room, want[i], taken, c)
		}
	}
}

// flaky is a hook that may let decisions fail: before they are sent, or after their replies. Commands in the background pass.
type flaky struct{ before, after atomic.Pointer[func() error] }

func (*flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if _, ok := cmd.(servers.Cmd); !ok {
			return next(ctx, cmd)
		}
		var err error
		if before := f.before.Load(); before != nil {
			err = (*before)()
		}
		if err == nil {
			err = next(ctx, cmd)
		}
		if after := f.after.Load(); err == nil && after != nil {
			err = (*after)()
		}
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

// openFlaky returns a store on a ring, a hook of the server of one subject, and another subject that a server without the hook has. Subjects are
// asked in the order of their names. The other's is "other" with a number.
func openFlaky(t *testing.T, subject string) (s *store, hook *flaky, other string) {
	hooks := make(map[string]*flaky)
	client := redis.NewRing(&redis.RingOptions{
		Addrs:              map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr},
		HeartbeatFrequency: time.Hour, // no server leaves the ring
		NewClient: func(opt *redis.Options) *redis.Client {
			c := redis.NewClient(opt)
			hooks[opt.Addr] = new(flaky)
			c.AddHook(hooks[opt.Addr])
			return c
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	addrOf := func(subject string) string {
		shard, err := client.GetShardClientForKey(subject)
		if err != nil {
			t.Fatal(err)
		}
		return shard.Options().Addr
	}
	for n := 0; other == "" || addrOf(other) == addrOf(subject); n++ {
		other = fmt.Sprint("other", n)
	}
	return New(client, asking...).(*store), hooks[addrOf(subject)], other
}

// If a server fails, the others give back what they were charged, whether they were asked before or after.
func TestSpreadOverAServerThatFails(t *testing.T) {
	t.Parallel()
	away := func() error { return errors.New("away") }
	for _, lost := range []string{"lost", "unreachable"} {
		s, hook, other := openFlaky(t, lost)
		subjects := []string{lost, other}
		for _, upTo := range []bool{false, true} {
			call := of(minute, 3, subjects...)
			call.UpTo = upTo
			hook.before.Store(&away)
			if v, err := s.Decide(t.Context(), call.Clone()); err == nil || v.Admitted {
				t.Errorf("%v: got %+v, %v", subjects, v, err)
			}
			hook.before.Store(nil)
			if left := rooms(t, s, call); left[0] != 3 || left[1] != 3 {
				t.Errorf("%v, up to %t: %v of 3 permits are left", subjects, upTo, left)
			}
			if n, err := s.Reset(t.Context(), &call); n != 0 || err != nil {
				t.Errorf("%v, up to %t: %d windows are open, error %v", subjects, upTo, n, err)
			}
		}
	}
}

// A rule in shadow mode neither refuses a call over several servers nor delays it.
func TestSpreadWithAShadow(t *testing.T) {
	t.Parallel()
	s := openRing(t)
	requireAdmits(t, s, func() engine.Call { return of(minute, 1, "b") }, 1, 1)
	for _, subjects := range [][]string{{"a", "b"}, {"b", "a"}} {
		call := of(minute, 1, subjects...)
		shadow, other := &call.Claims[0], &call.Claims[1]
		if subjects[1] == "b" {
			shadow, other = other, shadow
		}
		shadow.Mode, other.Limit = engine.Shadow, 2
		v, err := s.Decide(t.Context(), &call)
		if err != nil || !v.Admitted || v.At != v.Now || !shadow.Refused || shadow.Charged != 0 || other.Charged != 1 || shadow.Earliest <= v.Now {
			t.Errorf("got %+v, %v, of %+v", v, err, call)
		}
	}
}

// A rule that blocks may find a place for a call that waits. Where the rules are on several servers, the place is given back and the call asks
// again, and only a call that has no time to wait begins a block.
func TestSpreadWithABlock(t *testing.T) {
	t.Parallel()
	s := openRing(t)
	rule := &engine.Rule{Name: "blocking", Tag: "1m", Kind: engine.SlidingWindow, Per: 60 * second, Block: 3600 * second}
	used := of(rule, 1, "b")
	requireAdmits(t, s, func() engine.Call { return *used.Clone() }, 1, 1)
	call := of(rule, 1, "a", "b")
	for i := range call.Claims {
		call.Claims[i].Wait = 600 * second
	}
	for range 2 {
		c := *call.Clone()
		v, err := s.Decide(t.Context(), &c)
		if err != nil || v.Admitted || !c.AskAgain(v) || v.At <= v.Now || v.At > v.Now+60*second {
			t.Fatalf("got %+v, %v, of %+v", v, err, c)
		}
		if left := rooms(t, s, of(rule, 1, "a")); left[0] != 1 {
			t.Fatalf("%v permits are left of a call that asks again", left)
		}
	}
	for i := range call.Claims {
		call.Claims[i].Wait = second
	}
	for want := range 2 { // the refusal begins a block, which the next one tells
		c := *call.Clone()
		v, err := s.Decide(t.Context(), &c)
		if err != nil || v.Admitted || c.AskAgain(v) || !c.Claims[1].Refused {
			t.Fatalf("got %+v, %v, of %+v", v, err, c)
		}
		if blocked := c.Claims[1].Earliest > v.Now+60*second; want == 1 && !blocked {
			t.Errorf("no block: %+v", c.Claims[1])
		}
	}
}

// If the context of a call ends while a server decides, the charge is given back once.
func TestSpreadWhoseContextEnds(t *testing.T) {
	t.Parallel()
	for _, late := range []string{"late", "tardy"} {
		s, hook, other := openFlaky(t, late)
		subjects := []string{late, other}
		used := of(minute, 10, subjects...)
		used.Claims[0].Cost, used.Claims[1].Cost = 5, 5
		if _, err := s.Reset(t.Context(), &used); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Decide(t.Context(), &used); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		end := func() error { cancel(); return nil }
		hook.after.Store(&end)
		call := of(minute, 10, subjects...)
		call.Claims[0].Cost, call.Claims[1].Cost = 2, 2
		if _, err := s.Decide(ctx, &call); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		redistest.Eventually(t, "what goes back", func() bool { return rooms(t, s, used)[0] >= 5 && rooms(t, s, used)[1] >= 5 })
		s.requireIdle(t, subjects...)
		if left := rooms(t, s, used); left[0] != 5 || left[1] != 5 {
			t.Errorf("%v: %v permits of 10 are left; others use 5", subjects, left)
		}
	}
}

// requireIdle waits until nothing is on its way to the servers of the subjects.
func (s *store) requireIdle(t *testing.T, subjects ...string) {
	for _, subject := range subjects {
		n, err := s.node(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "what is on the way", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.sending == 0 && len(n.waiting) == 0
		})
	}
}

// If an UpTo call cannot give back the permits beyond the smallest room, it fails and gives back all that it took, and no permits of others. That
// is so whether or not the server has done the first part.
func TestSpreadUpToThatCannotGiveBack(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"not sent": false, "no reply": true} {
		s, hook, scarce := openFlaky(t, "ample")
		used := of(minute, 10, "ample", scarce)
		used.Claims[0].Cost, used.Claims[1].Cost = 5, 9
		if _, err := s.Decide(t.Context(), &used); err != nil {
			t.Fatal(err)
		}
		commands := 0 // of the call: it is decided, and then gives back
		fail := func() error {
			if commands++; commands == 2 {
				return map[bool]error{false: &net.OpError{Op: "dial", Err: errors.New("away")}, true: io.EOF}[done]
			}
			return nil
		}
		if done {
			hook.after.Store(&fail)
		} else {
			hook.before.Store(&fail)
		}
		call := of(minute, 10, "ample", scarce)
		call.UpTo, call.Claims[0].Cost, call.Claims[1].Cost = true, 3, 3
		if v, err := s.Decide(t.Context(), &call); err == nil || v.Admitted {
			t.Errorf("%s: got %+v, %v", name, v, err)
		}
		if left := rooms(t, s, used); left[0] != 5 || left[1] != 1 {
			t.Errorf("%s: %v permits are left; want 5 and 1", name, left)
		}
	}
}

// A call that may wait is not charged, and the verdict says when to ask again.
func TestSpreadAsksAgain(t *testing.T) {
	t.Parallel()
	s := openCluster(t)
	short := &engine.Rule{Name: "short", Tag: "50ms", Kind: engine.SlidingWindow, Per: 50_000}
	call := of(short, 1, "a", "b")
	for i := range call.Claims {
		call.Claims[i].Wait = 60 * second
	}
	for range 5 {
		for {
			c := *call.Clone()
			v, err := s.Decide(context.Background(), &c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Admitted {
				break
			}
			if !c.AskAgain(v) || v.At <= v.Now || c.Claims[0].Wait != 60*second {
				t.Fatalf("got %+v of %+v", v, c)
			}
			time.Sleep(time.Duration(v.At-v.Now) * time.Microsecond)
		}
	}
	call.Peek = true
	for i := range call.Claims {
		call.Claims[i].Rule = minute
	}
	for range 2 { // nobody is charged by looking
		if v, err := s.Decide(context.Background(), &call); err != nil || !v.Admitted || v.At != v.Now {
			t.Fatalf("got %+v, %v", v, err)
		}
	}
	used := of(minute, 1, "b")
	requireAdmits(t, s, func() engine.Call { return *used.Clone() }, 1, 1)
	if v, err := s.Decide(context.Background(), &call); err != nil || !v.Admitted || v.At <= v.Now {
		t.Errorf("a call that would wait: got %+v, %v", v, err)
	}
}

// The first calls to a cluster whose client hides that it is one succeed, even if they are sent together.
func TestHiddenCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	for round := range 20 {
		s := New(struct{ redis.UniversalClient }{client}, asking...)
		errs := make(chan error, 16)
		for i := range cap(errs) {
			go func() {
				call := of(minute, 9, fmt.Sprint(round, i))
				_, err := s.Decide(context.Background(), &call)
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}
