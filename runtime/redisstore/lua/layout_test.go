package lua

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// This file has states of each kind of rule as the script wrote them before states had a layout. At the last commit before layouts,
// TestWriteStates wrote the file with the flag -layout.write.
const statesWithoutLayout = "testdata/states_without_layout.txt"

const newestLayout = 2 // NEWEST of bucket.lua

var writeLayout = flag.String("layout.write", "", "write the states that the present script makes to a file")

// usage is the calls of one subject.
type usage struct {
	name  string
	claim engine.Claim
	steps []string // "call", or "leave": the second waiting call gives up
}

// kindsWithoutLayout are the kinds in versions before layouts, in the order of their numbers in those versions.
var kindsWithoutLayout = []engine.Kind{
	engine.SlidingWindow, engine.FixedWindow, engine.Calendar, engine.TokenBucket, engine.Prepaid, engine.Warmup, engine.SlidingCounter,
	engine.Distinct, engine.DistinctCalendar,
}

func usages(t testing.TB, kinds []engine.Kind) []usage {
	spec, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("0 * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	minutes := engine.NewSchedule(spec.Next, true, time.UTC)
	var all []usage
	add := func(name string, kind engine.Kind, steps ...string) *usage {
		r := &engine.Rule{Name: name, Tag: "tag", Kind: kind, Per: 60 * second, Slices: 4, Warmup: 10 * second}
		if kind == engine.Calendar || kind == engine.DistinctCalendar {
			r.Per, r.Schedule = 0, minutes
		}
		c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: "s", Cost: 1, Limit: 5, Burst: 5}}
		if kind == engine.Anchored || kind == engine.DistinctAnchored {
			r.Per, r.Every = 0, engine.Every{Days: 1, Zone: time.UTC}
			c.Anchor, _ = engine.AnchorAt(time.UnixMicro(start))
		}
		if kind == engine.Warmup {
			c.Limit, c.Burst = 50, 0
		}
		all = append(all, usage{name: name, claim: c, steps: steps})
		return &all[len(all)-1]
	}
	for i, kind := range kinds {
		if kind.CountsMembers() {
			add(fmt.Sprint("members", i+1), kind, "x", "y", "x")
			continue
		}
		add(fmt.Sprint("used", i+1), kind, "call", "call", "call")
		if kind.Accepts("up-to") && kind.Accepts("wait") {
			u := add(fmt.Sprint("waiting", i+1), kind, "call", "call", "call", "call", "call", "call", "call", "call", "leave")
			u.claim.Wait = 600 * second
			if kind == engine.Anchored {
				u.claim.Wait = 2 * 86_400 * second
			}
		}
	}
	blocked := add("blocked", engine.FixedWindow, "call", "call", "call", "call", "call", "call")
	blocked.claim.Rule.Block = 300 * second
	return all
}

// play makes the calls of a subject, one step a second.
func (u *usage) play(set func(int64), decide func(*engine.Call), adjust func(*engine.Call)) {
	var waiting []*engine.Call
	for i, step := range u.steps {
		set(start + int64(i+1)*second)
		if step == "leave" {
			waiting[1].Claims[0].Delta = -1
			adjust(waiting[1])
			continue
		}
		call := &engine.Call{Prefix: "p", Claims: []engine.Claim{u.claim}}
		call.Claims[0].Member = step
		if decide(call); call.Claims[0].At > start+int64(i+1)*second {
			waiting = append(waiting, call)
		}
	}
}

// later is the time at which the states are read.
const later = start + 10*second

func TestWriteStates(t *testing.T) {
	t.Parallel()
	if *writeLayout == "" {
		*writeLayout = t.TempDir() + "/states.txt"
	}
	v := newVirtual(t)
	for _, u := range usages(t, kindsWithoutLayout) {
		u.play(v.set, func(call *engine.Call) {
			if _, err := v.decide(call); err != nil {
				t.Fatal(err)
			}
		}, v.adjust)
	}
	var text strings.Builder
	dump := v.dump()
	for _, key := range slices.Sorted(maps.Keys(dump)) {
		fmt.Fprintf(&text, "%s %d %x\n", key, v.client.PExpireTime(t.Context(), key).Val().Milliseconds(), dump[key])
	}
	if err := os.WriteFile(*writeLayout, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n < len(usages(t, kindsWithoutLayout)) {
		t.Errorf("%d subjects left %d states", len(usages(t, kindsWithoutLayout)), n)
	}
}

// States from before layouts are read correctly, even by many calls at the same time. They get a layout when they are written.
func TestStatesWithoutLayout(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	restore(v, "s")
	v.set(later)
	for _, u := range usages(t, kindsWithoutLayout) {
		now := int64(0)
		cells := []*engine.Cell{new(engine.Cell)}
		*cells[0] = engine.NewCell(u.claim.Rule)
		u.play(func(at int64) { now = at }, func(call *engine.Call) { call.Decide(cells, now) }, func(call *engine.Call) { call.Adjust(cells, now) })
		cells[0].DropFreePlaces() // free places had another key

		const calls = 40
		want := make(map[int64]int) // the number of calls by the time for which they are admitted
		for i := range calls {
			call := u.call(i)
			if w := call.Decide(cells, later); w.Admitted {
				want[w.At]++
			}
		}
		if got := u.storm(v, calls); !maps.Equal(got, want) {
			t.Errorf("%s: calls are admitted for %v, want %v", u.name, got, want)
		}
		if len(want) == 0 && u.name != "blocked" {
			t.Errorf("%s: nothing is admitted, so nothing is written", u.name)
		}
	}
	for key, state := range v.strings() {
		if !strings.HasPrefix(key, "p:blocked:") && !strings.Contains(key, ":free:") && (len(state)%8 != 1 || state[0] == 0 || state[0] > newestLayout) {
			t.Errorf("%s has %d bytes, %q", key, len(state), state)
		}
	}
}

func (u *usage) call(i int) *engine.Call {
	call := &engine.Call{Prefix: "p", Claims: []engine.Claim{u.claim}}
	call.Claims[0].Member = fmt.Sprint("m", i)
	return call
}

// storm makes many calls at the same time, and returns how many of them are admitted for each time.
func (u *usage) storm(v *virtual, calls int) map[int64]int {
	var mu sync.Mutex
	var done sync.WaitGroup
	got := make(map[int64]int)
	for i := range calls {
		done.Go(func() {
			w, err := v.decide(u.call(i))
			if err != nil {
				v.t.Errorf("%s: %v", u.name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if w.Admitted {
				got[w.At]++
			}
		})
	}
	done.Wait()
	return got
}

// restore restores the states for each of the given subjects.
func restore(v *virtual, subjects ...string) {
	file, err := os.Open(statesWithoutLayout)
	if err != nil {
		v.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var key, text string
		var expiry int64
		if _, err := fmt.Sscan(lines.Text(), &key, &expiry, &text); err != nil {
			v.t.Fatal(err)
		}
		dump, _ := hex.DecodeString(text)
		for _, subject := range subjects {
			key := strings.Replace(key, "{s}", "{"+subject+"}", 1)
			if err := v.client.Do(v.t.Context(), "restore", key, expiry, dump, "absttl").Err(); err != nil {
				v.t.Fatal(err)
			}
		}
	}
}

// A call that finds a later layout charges nothing. Its error names the layout.
func TestLaterLayout(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	for _, u := range usages(t, engine.Kinds()) {
		v.client.FlushDB(t.Context())
		u.play(v.set, func(call *engine.Call) { v.decide(call) }, v.adjust)
		v.set(later)
		for key, state := range v.dump() {
			if v.client.Type(t.Context(), key).Val() == "zset" {
				continue // a set has no layout; a later version would use another type
			}
			known := v.age(key)
			layout := known + 1
			if known == 8 {
				layout = 16
			}
			before := v.dump()
			for _, mode := range []engine.Mode{engine.Enforce, engine.Shadow} { // a plain call, and another one
				call := u.call(0)
				other := engine.Claim{Ask: engine.Ask{Rule: &engine.Rule{Name: "other", Tag: "tag", Kind: engine.FixedWindow, Per: second}, Subject: "s", Cost: 1, Limit: 3, Mode: mode}}
				call.Claims = []engine.Claim{other, u.claim}
				_, err := v.decide(call)
				want := fmt.Sprintf("state has layout %d; this program knows layout %d: update it", layout, known)
				if unreadable, ok := errors.AsType[*backend.StateError](err); !ok || unreadable.Error() != want {
					t.Errorf("%s: the error is %v, want %s", key, err, want)
				}
				if !maps.Equal(before, v.dump()) {
					t.Errorf("%s: the call has written", key)
				}
			}
			v.client.RestoreReplace(t.Context(), key, 0, state)
		}
	}
}

// age gives a state the next layout, and returns the newest one that is known. That of a list is the size of its elements.
func (v *virtual) age(key string) (known int) {
	ctx := v.t.Context()
	if v.client.Type(ctx, key).Val() != "list" {
		known = int(v.client.Get(ctx, key).Val()[0])
		v.client.SetRange(ctx, key, 0, string([]byte{byte(known + 1)}))
		return known
	}
	n := v.client.LLen(ctx, key).Val()
	v.client.Del(ctx, key)
	for range n {
		v.client.RPush(ctx, key, "of sixteen bytes")
	}
	return 8
}
