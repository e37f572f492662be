package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// everySeven is a schedule whose windows last seven seconds.
func everySeven() *Schedule {
	return NewSchedule(func(t time.Time) time.Time {
		return t.Add(time.Duration(7-t.Unix()%7) * time.Second).Truncate(time.Second)
	}, true, time.UTC)
}

// If nothing else is charged, there is no more room than now before More, and there is at More. If More is now, there never is. In a debt of a
// Prepaid or a Warmup, no call passes before More, and one passes at More.
func TestMoreIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Per: rapid.SampledFrom([]int64{7, 1000, 999_983, 60 * second}).Draw(t, "per")}
		switch {
		case rule.Kind == Concurrency:
			rule.Kind = Amounts
		case rule.Kind == Warmup:
			rule.Warmup = rapid.SampledFrom([]int64{1, 1000, 10 * second}).Draw(t, "warmup")
		case rule.Kind == Calendar || rule.Kind == DistinctCalendar:
			rule.Schedule = everySeven()
		case rule.Kind == Anchored || rule.Kind == DistinctAnchored:
			rule.Every = Every{Days: 1, Zone: time.UTC}
		}
		rule.Slices = min(rule.Per, rapid.SampledFrom([]int64{1, 3, 7}).Draw(t, "slices"))
		cell, now := NewCell(&rule), int64(1_000_000*second)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 3, 100, 1000, 300_000, 2 * second}).Draw(t, "later")
			c := Claim{Ask: Ask{Rule: &rule, Cost: rapid.Int64Range(1, 6).Draw(t, "cost")}}
			c.Limit = rapid.SampledFrom([]int64{5, 5, 5, 3, 10, 1}).Draw(t, "limit")
			c.Burst = rapid.SampledFrom([]int64{c.Limit, 7, 1}).Draw(t, "burst")
			c.Anchor, _ = AnchorAt(time.UnixMicro(now - rapid.SampledFrom([]int64{0, 1000, 500_000}).Draw(t, "anchor")))
			if rule.Kind == Warmup || rule.Kind == Prepaid && rapid.Bool().Draw(t, "leaky") {
				c.Burst = 0
			}
			if rule.Kind.CountsMembers() {
				c.Cost, c.Member = 1, rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "member")
			} else {
				most, _ := c.Most()
				c.Cost = min(c.Cost, most)
			}
			if rule.Kind.Accepts("wait") {
				c.Wait = rapid.SampledFrom([]int64{0, 0, 10 * rule.Per}).Draw(t, "wait")
			}
			call := Call{Claims: []Claim{c}, Report: true}
			v := call.Decide([]*Cell{&cell}, now)
			if v.Admitted && !rule.Kind.CountsMembers() && rapid.IntRange(0, 3).Draw(t, "settles") == 0 {
				call.Claims[0].Delta = rapid.Int64Range(-call.Claims[0].Charged, 8).Draw(t, "delta")
				call.Adjust([]*Cell{&cell}, now)
				call.Claims[0].Wait = 0
				call.Decide([]*Cell{&cell}, now)
			}
			requireMore(t, &call.Claims[0], cell.State(&rule), now)
		}
	})
}

func requireMore(t *rapid.T, c *Claim, state State, now int64) {
	if c.Room != state.Room(c, now) {
		t.Fatalf("a room of %d after a report of %d", state.Room(c, now), c.Room)
	}
	isMore := func(at int64) bool { return state.Room(c, at) > max(0, c.Room) }
	if c.Rule.Kind.isPrepaid() && state.Earliest(c, 1, now, now) > now {
		isMore = func(at int64) bool { return state.Earliest(c, 1, at, at) <= at }
	}
	if c.More == now {
		if at := state.Full(c, now) + 2*c.Rule.Per + 14*second; isMore(at) {
			t.Fatalf("no more than %d is said to come, and there is a room of %d at last", c.Room, state.Room(c, at))
		}
		return
	}
	if !isMore(c.More) {
		t.Fatalf("of %+v: a room of %d now, and of %d at More, in %d us", *c, c.Room, state.Room(c, c.More), c.More-now)
	}
	for at := now; at < c.More; at += 1 + (c.More-now)/1000 {
		if isMore(at) || isMore(c.More-1) {
			t.Fatalf("of %+v: a room of %d now, and of %d in %d us, before More, in %d us", *c, c.Room, state.Room(c, at), at-now, c.More-now)
		}
	}
}

// A block and a pause leave nothing until they end. What has come back by then is more than nothing.
func TestMoreInBlocksAndPauses(t *testing.T) {
	for _, test := range []struct {
		name              string
		block, pause      int64
		used, cost, limit int64
		room, more        int64
	}{
		{"a block that ends before the window", 10 * second, 0, 5, 1, 5, 0, 60 * second},
		{"a block that ends after the window", 90 * second, 0, 5, 1, 5, 0, 90 * second},
		{"a block of a call that costs more than is left", 10 * second, 0, 3, 3, 5, 0, 10 * second},
		{"a pause with permits left", 0, 10 * second, 3, 1, 5, 2, 10 * second},
		{"a pause that ends after the window", 0, 90 * second, 5, 1, 5, 0, 90 * second},
		{"a pause that ends before the window", 0, 10 * second, 5, 1, 5, 0, 60 * second},
		{"neither", 0, 0, 3, 3, 5, 2, 60 * second},
	} {
		s := newSubject(t, Rule{Kind: FixedWindow, Per: 60 * second, Block: test.block, Pausable: test.pause > 0})
		s.admits(int(test.used), Claim{Ask: Ask{Cost: 1, Limit: test.limit}})
		if test.pause > 0 {
			s.cell.changePause(Pauses, test.pause, s.now)
		}
		for _, peek := range []bool{true, false, false} { // the second refusal finds the block of the first
			call := Call{Claims: []Claim{{Ask: Ask{Rule: &s.rule, Cost: test.cost, Limit: test.limit}}}, Peek: peek, Report: true}
			v := call.Decide([]*Cell{&s.cell}, s.now)
			if c := call.Claims[0]; v.Admitted || c.Room != test.room || c.More-s.now != test.more {
				t.Errorf("%s, peek %t: %+v, a room of %d, more in %d us; want %d, %d", test.name, peek, v, c.Room, c.More-s.now, test.room, test.more)
			}
		}
	}
}

// Nobody knows when calls end.
func TestMoreOfCallsThatRun(t *testing.T) {
	s := newSubject(t, Rule{Kind: Concurrency, Per: 60 * second})
	for id := range uint64(3) {
		if call, _ := s.ask(Claim{Ask: Ask{Cost: 1, Limit: 2, ID: id}}); call.Claims[0].More != 0 && call.Claims[0].More != s.now {
			t.Errorf("more in %d us", call.Claims[0].More-s.now)
		}
	}
}
