package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// However long the thread is stopped between the readings of the two clocks, the clock stays right. It follows when the wall clock is set.
func TestClockAgreesWithTheWallClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{start: time.Now()}
		offset, since := int64(1_700_000_000_000_000), int64(0) // the true values
		c.offset.Store(offset)
		t.Repeat(map[string]func(*rapid.T){
			"compare": func(t *rapid.T) {
				before := since + rapid.Int64Range(0, 5_000_000).Draw(t, "later")
				wall := before + rapid.SampledFrom([]int64{0, 1, 30, 1_000_000}).Draw(t, "stopped")
				since = wall + rapid.SampledFrom([]int64{0, 1, 30, 1_000_000}).Draw(t, "stopped again")
				c.compare(before, wall+offset, since)
				if off := c.offset.Load() - offset; off < wall-since || off > wall-before {
					t.Fatalf("the clock is off by %d us; the readings are from %d before to %d after", off, wall-before, since-wall)
				}
			},
			"stopped while right": func(t *rapid.T) {
				c.offset.Store(offset)
				since += 1_000_000
				c.compare(since, since+offset+rapid.Int64Range(0, 900_000).Draw(t, "wall"), since+900_000)
				if off := c.offset.Load() - offset; off != 0 {
					t.Fatalf("the clock was right and is off by %d us", off)
				}
			},
			"put right": func(t *rapid.T) {
				offset += rapid.Int64Range(-10_000_000, 10_000_000).Draw(t, "by")
				c.compare(since, since+offset, since+3)
				if off := c.offset.Load() - offset; off < -3 || off > 3 {
					t.Fatalf("after the wall clock was put right, the clock is off by %d us", off)
				}
			},
		})
	})
}

func TestClockIsRight(t *testing.T) {
	c := newClock(nil)
	for range 1000 {
		before := time.Now().UnixMicro()
		got := c.now()
		if after := time.Now().UnixMicro(); got < before-1 || got > after+1 {
			t.Fatalf("%d is not from %d to %d", got, before, after)
		}
	}
}

// A clock that is read follows the wall clock.
func TestClockIsPutRight(t *testing.T) {
	c := newClock(nil)
	c.offset.Add(int64(time.Hour / time.Microsecond))
	if off := time.Until(time.UnixMicro(c.now())).Abs(); off > 30*time.Minute {
		t.Errorf("it does not compare itself with the wall clock: it is off by %s", off)
	}
}

func TestClockByHand(t *testing.T) {
	for _, at := range []time.Time{{}, time.UnixMicro(-1), time.UnixMicro(0), time.UnixMicro(1_700_000_000_000_001)} {
		if got := newClock(func() time.Time { return at }).now(); got != at.UnixMicro() {
			t.Errorf("%s: got %d; expected %d", at, got, at.UnixMicro())
		}
	}
}

// The clock shows the same microsecond as the wall clock, even if it was made within a microsecond.
func TestClockShowsWholeMicroseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []time.Duration{0, 1, 400, 600, 999} {
			time.Sleep(part)
			c := newClock(nil)
			for range 2000 {
				if got, want := c.now(), time.Now().UnixMicro(); got != want {
					t.Fatalf("the clock shows %d at %d, after it was made %v later than a whole microsecond", got, want, part)
				}
				time.Sleep(999_900 * time.Nanosecond)
			}
		}
	})
}

// A member that has not been admitted is unknown at any time, even on a clock that a test starts at or before 1970.
func TestUnknownMembersBeforeTheEpoch(t *testing.T) {
	for _, now := range []int64{-62135596800000000, -1, 0, 99, 100} {
		s := New((&hand{now: now}).time, 10, 1e6)
		for i, member := range []string{"a", "b", "c"} {
			call := callOf("s", 1, ruleOf(engine.Distinct, 100))
			call.Claims[0].Member = member
			expect(t, s, call, i == 0)
		}
	}
}

// Each call reads the clock while it holds its locks. So the times of decisions are in the order of the decisions, and no other call removes an
// entry that expires between the reading and the decision.
func TestTimesAreInOrder(t *testing.T) {
	var s *Store
	reads := 0
	s = New(func() time.Time {
		reads++
		for i := range s.shards {
			if !s.shards[i].TryLock() {
				return time.UnixMicro(hour)
			}
			s.shards[i].Unlock()
		}
		t.Error("the clock is read without a lock")
		return time.UnixMicro(hour)
	}, 1e6, 1<<30)
	rule := &engine.Rule{Name: "r", Kind: engine.TokenBucket, Per: 1_000_000}
	for range 3 { // a call with a new state, one with a known state, and a refusal
		if _, err := s.Decide(context.Background(), callOf("k", 2, rule)); err != nil {
			t.Fatal(err)
		}
	}
	if reads < 3 {
		t.Errorf("the clock is read %d times", reads)
	}
}
