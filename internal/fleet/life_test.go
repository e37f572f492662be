package fleet_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// A beat ends when nobody uses the fleet any more, although the client is open.
func TestBeatEndsWithTheFleet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	register(f, "program", 1)
	server.WaitFor("HLEN p.seen:{p}:processes", "1")
	gone := weak.Make(f)
	f = nil
	redistest.Eventually(t, "the fleet is collected", func() bool { runtime.GC(); return gone.Value() == nil })
}

// A limiter without rules, as those of tools are, is no process, whatever it reads and changes. With its first rule it becomes one.
func TestLimiterWithoutRules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		c, counted := client(t, server.Addr, 0)
		l := ratelimit.New(redisstore.New(c, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
		if err := l.Overrides().Set(t.Context(), "r", ratelimit.Override{Burst: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Rules(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := counted.count.Load()
		time.Sleep(time.Minute)
		if n := counted.count.Load() - before; n > 0 || server.Do("EXISTS p.seen:{p}:processes") != "0" {
			t.Errorf("%d commands are sent by themselves", n)
		}
		if err := l.Check(ratelimit.PerSecond(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if n := server.Do("HLEN p.seen:{p}:processes"); n != "1" {
			t.Errorf("%s processes are listed", n)
		}
	})
}

// A limiter that only peeks, or decides in its process alone, follows overrides, blocks and pauses as others do. It is no process.
func TestLimiterWithoutDeclaredRulesFollows(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, server.Addr, 0)
		other, _ := client(t, server.Addr, 0)
		l := ratelimit.New(redisstore.New(c, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
		tool := ratelimit.New(redisstore.New(other, redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("p"))
		request := func(name string) ratelimit.Request {
			return ratelimit.Request{Rule: ratelimit.Rule{Name: name, Limit: 5, Per: time.Hour}, Key: "ann"}
		}
		peek := func(name string) (bool, int64) {
			d, err := l.Peek(t.Context(), request(name))
			if err != nil {
				t.Fatal(err)
			}
			return d.Allowed, d.Quotas[0].Limit
		}
		peek("other")
		time.Sleep(3 * time.Second)
		two := int64(2)
		if err := errors.Join(tool.Overrides().Set(t.Context(), "limited", ratelimit.Override{Limit: &two}),
			tool.Block(t.Context(), time.Hour, request("blocked")), tool.Pause(t.Context(), time.Hour, request("paused"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for name, want := range map[string]struct {
			allowed bool
			limit   int64
		}{"other": {true, 5}, "limited": {true, 2}, "blocked": {false, 5}, "paused": {false, 5}} {
			if allowed, limit := peek(name); allowed != want.allowed || limit != want.limit {
				t.Errorf("%s: got %t, %d", name, allowed, limit)
			}
		}
		local := ratelimit.New(redisstore.New(other), ratelimit.WithPrefix("p")) // without a beat until its first call
		q := request("blocked")
		q.Rule.Scope = ratelimit.ScopeInstance
		if d, err := local.Allow(t.Context(), q); err != nil || !d.Allowed {
			t.Errorf("before the first beat: got %+v, %v", d, err)
		}
		time.Sleep(time.Minute)
		if d, err := local.Allow(t.Context(), q); err != nil || d.Allowed {
			t.Errorf("a call of instance scope: got %+v, %v", d, err)
		}
		if n := server.Do("KEYS p.seen*"); n != "" {
			t.Errorf("a limiter without rules writes %s", n)
		}
		runtime.KeepAlive(l)
	})
}

// Two seconds after a server lost all, the rules and the processes are there again.
func TestSeenAgainWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		var alive []*fleet.Fleet
		for i := range 5 {
			c, _ := client(t, server.Addr, 0)
			f := of(c, "p")
			register(f, fmt.Sprint("program", i%2), 3)
			alive = append(alive, f)
			time.Sleep(300 * time.Millisecond)
		}
		for n := range 5 {
			time.Sleep(5*time.Second + time.Duration(n)*230*time.Millisecond)
			server.Do("FLUSHALL")
			time.Sleep(2 * time.Second)
			if rules, processes := server.Do("HLEN p.seen:{p}:rules"), server.Do("HLEN p.seen:{p}:processes"); rules != "6" || processes != "5" {
				t.Errorf("%s rules, %s processes", rules, processes)
			}
		}
		runtime.KeepAlive(alive)
	})
}

// A process is gone twelve seconds after its last word.
func TestProcessIsGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) { // the time stands still
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		if _, err := f.Clock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for age, listed := range map[time.Duration]int{0: 1, 12*time.Second - time.Millisecond: 1, 12*time.Second + time.Millisecond: 0} {
			list(t, c, 1, f.Now().Add(-age))
			if all, err := f.Processes(t.Context()); err != nil || len(all) != listed {
				t.Errorf("%s after its last word: %d processes are listed, %v", age, len(all), err)
			}
		}
	})
}

// A process is listed whatever its last error says, such as the page of a web server, most of whose characters JSON escapes.
func TestProcessWithALongErrorIsListed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Hide()
	register(f, "program", 1)
	f.NoteStore(errors.New(strings.Repeat("<>", 200)))
	for range 2 {
		f.Beat()
	}
	if all, err := f.Processes(t.Context()); err != nil || len(all) != 1 || !strings.Contains(all[0].Store, "<><>") {
		t.Errorf("got %+v, %v", all, err)
	}
}

// The rules of one build are written once, however many processes run it.
func TestRulesOfABuildAreWrittenOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	written := func() int { return strings.Count(server.Do("SLOWLOG GET -1"), "HSET\np.seen:{p}:rules\n") }
	server.Do("CONFIG SET slowlog-log-slower-than 0")
	server.Do("CONFIG SET slowlog-max-len 10000")
	for i := range 3 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		f.Hide()
		register(f, "program", 150)
		for range 6 {
			f.Beat()
		}
		if n := written(); n != 2 || server.Do("HLEN p.seen:{p}:processes") != fmt.Sprint(i+1) {
			t.Errorf("process %d: %d commands have written the rules", i, n)
		}
	}
}

// What is cleared after a loss ends also where processes keep it in force, although the store does not have it.
func TestClearAfterALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	block := &fleet.Setting{Kind: fleet.Block, Rule: "r", Key: "eve", Values: fleet.Values{Until: time.Now().Add(time.Hour)}}
	set(t, f, "kim", override("r", "", 1), override("r", "ann", 2), block)
	server.Do("FLUSHALL")
	if f.Beat(); f.Status().Lost != 3 {
		t.Fatalf("got %+v", f.Status())
	}
	other, _ := client(t, server.Addr, 0)
	set(t, of(other, "p"), "kim", clear(override("r", "", 0)), clear(block))
	f.Beat()
	if f.Status().Lost != 1 || limit(f, "r", "x") != -1 || limit(f, "r", "ann") != 2 || f.InForce().Of("r").OfKey("eve").Block != nil {
		t.Errorf("got %+v, %v", f.Status(), f.KnownTexts())
	}
}

// A setting that ended over a day ago is removed from the store by whoever writes next, also by a process that did not know it while it held.
func TestEndedSettingsAreRemoved(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, ahead := range []time.Duration{0, 26 * time.Hour, 52 * time.Hour} {
		c, _ := client(t, server.Addr, ahead)
		f := of(c, "p")
		e := fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "block", For: time.Hour}
		for j := range 250 {
			e.Settings = append(e.Settings, &fleet.Setting{Kind: fleet.Block, Rule: "r", Key: fmt.Sprint(i, "-", j)})
		}
		if done, err := f.Change(t.Context(), e); err != nil || !done {
			t.Fatal(done, err)
		}
		if n, m := server.Do("HLEN p.fleet:{p}:settings"), server.Do("ZCARD p.fleet:{p}:versions"); n != "250" || m != "250" {
			t.Errorf("after %s the store has %s settings, %s versions", ahead, n, m)
		}
	}
}

// A setting may be made again at once after its forerunner was over, by a process that removes the forerunner.
func TestEndedSettingIsMadeAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	block := func(by *fleet.Fleet) {
		e := fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "block", For: time.Hour}
		e.Settings = []*fleet.Setting{{Kind: fleet.Block, Rule: "r", Key: "x"}}
		if done, err := by.Change(t.Context(), e); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	c, _ := client(t, server.Addr, 0)
	block(of(c, "p"))
	later, _ := client(t, server.Addr, 26*time.Hour)
	block(of(later, "p"))
	if all, err := of(later, "p").List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("other processes see %v, %v", all, err)
	}
}
