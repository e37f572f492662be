package memory

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/decide"
)

// The clock goes by the monotonic one, and takes over the wall clock's time only when that is due.
func TestClockFollowsTheWallClock(t *testing.T) {
	c := clock{start: time.Now()}
	exact := func(when string) {
		t.Helper()
		before := time.Now().UnixMicro()
		got := c.now()
		if after := time.Now().UnixMicro(); got < before || got > after {
			t.Errorf("%s: got %d; expected %d to %d", when, got, before, after)
		}
	}
	exact("at first")

	const off = int64(time.Hour / time.Microsecond)
	c.ahead.Add(off) // as if the wall clock had been put back by an hour since
	c.set.Store(off) // and this will not be looked at for long
	if got := c.now() - time.Now().UnixMicro(); got < off/2 {
		t.Errorf("before it is due, the clock is %d ahead; expected %d", got, off)
	}
	c.set.Store(-setEvery)
	exact("when it is due")
}

func TestClockByHand(t *testing.T) {
	for _, at := range []time.Time{{}, time.UnixMicro(-1), time.UnixMicro(0), time.UnixMicro(1_700_000_000_000_001)} {
		c := clock{ask: func() time.Time { return at }}
		if got := c.now(); got != at.UnixMicro() {
			t.Errorf("%s: got %d; expected %d", at, got, at.UnixMicro())
		}
	}
}

// What a limiter counts by itself goes by the clock of its store, and is counted apart.
func TestNewLike(t *testing.T) {
	clock := &hand{now: 1234}
	s := New(clock.time, 10)
	rule := newRule(decide.Log, "r", 100)
	expect(t, s, ask("a", 1, rule), true)
	like := NewLike(s, 1)
	if v := expect(t, like, ask("a", 1, rule), true); v.Now != clock.now {
		t.Errorf("its time is %d; expected %d", v.Now, clock.now)
	}
	expectFull(t, like, ask("b", 1, rule))
	expectCount(t, s, 1)

	before := time.Now().UnixMicro()
	if v := expect(t, NewLike(foreign{}, 1), ask("a", 1, rule), true); v.Now < before {
		t.Errorf("beside a store that is not in memory, the time is %d; expected %d or later", v.Now, before)
	}
}

type foreign struct{ decide.Store }

func TestSettings(t *testing.T) {
	s, ctx := New(nil, 1), context.Background()
	set := func(prefix, name, text string, onlyNew, want bool) {
		t.Helper()
		if done, err := s.Set(ctx, prefix, name, text, onlyNew); err != nil || done != want {
			t.Errorf("Set(%s, %s, %s, %t): %t, error %v; expected %t", prefix, name, text, onlyNew, done, err, want)
		}
	}
	set("p", "a", "1", true, true)
	set("p", "a", "2", true, false)
	set("q", "a", "3", false, true)
	set("p", "b", "4", false, true)
	set("p", "b", "5", false, true)
	found, err := s.Settings(ctx, "p")
	if err != nil || len(found) != 2 || found["a"] != "1" || found["b"] != "5" {
		t.Errorf("found %v, error %v", found, err)
	}
	found["a"] = "changed by the caller"
	if err := s.Unset(ctx, "p", "b"); err != nil {
		t.Error(err)
	}
	if err := s.Unset(ctx, "none", "b"); err != nil {
		t.Error(err)
	}
	if found, err = s.Settings(ctx, "p"); err != nil || len(found) != 1 || found["a"] != "1" {
		t.Errorf("after a change: found %v, error %v", found, err)
	}
}
