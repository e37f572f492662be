//go:build faults

package faults

import (
	"cmp"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// fakeClock is the clock of a server: a file with how far it is ahead of this machine's, in microseconds.
type fakeClock struct {
	t    *testing.T
	file *os.File
}

// startFaked starts a server whose clock steps as the test says.
func startFaked(t *testing.T) (*redistest.Server, fakeClock) {
	dir := t.TempDir()
	library := filepath.Join(dir, "clock.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c").CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed for a server's clock: install gcc and the headers of the C library: %v\n%s", err, out)
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := fakeClock{t, file}
	c.step(0)
	for name, value := range map[string]string{"LD_PRELOAD": library, "CLOCK_FILE": file.Name()} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
		defer os.Unsetenv(name)
	}
	return redistest.Start(t), c
}

// step sets the clock.
func (c fakeClock) step(ahead time.Duration) {
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds())), 0); err != nil {
		c.t.Error(err)
	}
}

// A server's clock that is set back lets nobody have more than the limit, and bars nobody for longer than a window and the step. One
// that is set forward lets subjects have at most one limit early.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-300 * time.Millisecond, -time.Hour, -24 * time.Hour, 300 * time.Millisecond, time.Hour, 24 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			server, clock := startFaked(t)
			limiter := ratelimit.New(redisstore.New(connect(t, server.Addr), redisstore.WithTimeout(time.Minute)), quiet())
			var b Book
			stepped := make(chan span, 1)
			time.AfterFunc(1500*time.Millisecond, func() {
				before := time.Now()
				clock.step(step)
				stepped <- span{before.UnixMicro(), time.Now().UnixMicro()}
			})
			press(&b, limiter, 4*time.Second, rules(), false)
			when := <-stepped
			if b.Count(Unknown) > 0 {
				t.Errorf("%d calls failed", b.Count(Unknown))
			}
			for _, rule := range rules() {
				for _, key := range keys {
					checkStep(t, b.Of(rule.Name, key), rule, step, when)
				}
			}
		})
	}
}

// span has the first and the last time at which something may have happened, in microseconds by the clock of this machine.
type span struct{ from, to int64 }

// checkStep checks what one key was admitted and refused around a step of the server's clock, by the clock of this machine.
func checkStep(t *testing.T, entries []Entry, rule ratelimit.Rule, step time.Duration, stepped span) {
	t.Helper()
	per := rule.Per
	if rule.Cron != "" {
		per = time.Second
	}
	last, jumped, longest := int64(0), false, time.Duration(0)
	admitted := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Outcome != Admitted })
	slices.SortFunc(admitted, func(a, b Entry) int { return cmp.Compare(a.Received, b.Received) })
	for _, e := range entries {
		jumped = jumped || e.At-e.Received > int64(step/time.Microsecond)/2 == (step > 0) && e.Sent > stepped.to
		if e.Outcome == Refused {
			longest = max(longest, time.Duration(e.RetryAfter)*time.Microsecond)
		} else {
			last = max(last, e.Received)
		}
	}
	if len(entries) == 0 || !jumped {
		t.Fatalf("%s: the clock did not step in %d calls", rule.Name, len(entries))
	}
	if most := 2*per + max(0, -step); longest > most { // a prepaid call may owe as much as a window
		t.Errorf("%s: refused for %v, want at most %v", rule.Name, longest, most)
	}
	if -step < time.Second && last < stepped.from+(per-min(0, step)).Microseconds() {
		t.Errorf("%s: nobody was admitted later than %v after the step", rule.Name, time.Duration(last-stepped.from)*time.Microsecond)
	}
	for i, first := range admitted {
		sum := int64(0)
		for _, e := range admitted[i:] {
			if e.Sent < first.Sent {
				continue
			}
			sum += e.Cost
			from, to := first.Sent, e.Received
			if most := mostAround(rule, per.Microseconds(), from, to, step > 0 && from <= stepped.to && stepped.from <= to); sum > most {
				t.Fatalf("%s: %d permits within %d µs, %d µs after the step; at most %d may be", rule.Name, sum, to-from, from-stepped.to, most)
			}
		}
	}
}

// mostAround returns how many permits a span by the clock of this machine may hold.
func mostAround(rule ratelimit.Rule, per, from, to int64, forward bool) int64 {
	windows := (to-from)/per + 1
	most := windows * rule.Limit
	switch rule.Algorithm {
	case ratelimit.TokenBucket, ratelimit.LeakyBucket:
		most = max(rule.Burst, rule.Limit) + (to-from)*rule.Limit/per + 2 // a prepaid call takes up to two
		if rule.Algorithm == ratelimit.LeakyBucket {
			most -= rule.Limit
		}
	case ratelimit.FixedWindow:
		most += rule.Limit // a span may begin and end within a window
	}
	if rule.Cron != "" {
		most += rule.Limit
	}
	if forward {
		most += max(rule.Burst, rule.Limit) + 2 // with the debt of a prepaid call
	}
	return most
}
