package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// After a loss, processes read many settings one after the other: about a tenth of them in each of ten seconds. The same if they have seen the
// store empty in between.
func TestReadsAreSpread(t *testing.T) {
	t.Parallel()
	for name, beats := range map[string]int{"at once": 0, "seen empty": 2} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			synctest.Test(t, func(t *testing.T) {
				c, _ := client(t, server.Addr, 0)
				set(t, of(c, "p"), "kim", override("r", "", 1))
				var all []*fleet.Fleet
				for range 40 {
					f := of(c, "p")
					f.Beat()
					all = append(all, f)
				}
				server.Do("FLUSHALL")
				for range beats {
					for _, f := range all {
						f.Beat()
					}
				}
				set(t, of(c, "p"), "kim", overrides("s", 1000)...)
				reading, most := len(all), 0
				for second := 0; reading > 0; second++ {
					before := reading
					reading = 0
					for _, f := range all {
						if f.Beat(); limit(f, "s", "k999") != 999 {
							reading++
						}
						if limit(f, "r", "") != 1 {
							t.Fatal("a setting that was lost does not hold")
						}
					}
					if most = max(most, before-reading); second > 10 {
						t.Fatalf("%d processes have not read the settings after %d seconds", reading, second)
					}
					time.Sleep(time.Second)
				}
				if most > 15 { // of 4 at random, with a deviation of 2
					t.Errorf("%d processes read within one second", most)
				}
			})
		})
	}
}

// overrides returns n overrides of the keys k0, k1 and so on, with the limits 0, 1 and so on.
func overrides(rule string, n int) (all []*fleet.Setting) {
	for i := range n {
		all = append(all, override(rule, fmt.Sprint("k", i), int64(i)))
	}
	return all
}

// The first settings are no loss, however many they are: within a second they are read by a process that has followed the empty store for long, by
// those that have just begun, and by one that begins meanwhile. The time is virtual, so the second after it is left for the reading.
func TestFirstSettingsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // a beat may still be trying when the clients are closed
		var processes []*fleet.Fleet
		begin := func() {
			c, _ := client(t, server.Addr, 0)
			f := of(c, "p")
			register(f, "program", 1)
			processes = append(processes, f)
		}
		begin()
		time.Sleep(time.Minute)
		for range 8 {
			begin()
			time.Sleep(50 * time.Millisecond)
		}
		c, _ := client(t, server.Addr, 0)
		set(t, of(c, "p"), "kim", overrides("r", fleet.MaxSettings)...)
		begin()
		time.Sleep(1010 * time.Millisecond)
		for i, f := range processes {
			if got := limit(f, "r", "k9999"); got != 9999 {
				t.Errorf("process %d: got the limit %d", i, got)
			}
		}
	})
}

// A beat without news is one exchange of four commands, and leaves the settings as they are.
func TestIdleBeat(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, counted := client(t, server.Addr, 0)
	f := of(c, "p")
	set(t, f, "", override("r", "", 1))
	for range 6 {
		f.Beat()
	}
	before, in := counted.count.Load(), f.InForce()
	for range 3 { // the ninth beat is no fifth one
		f.Beat()
	}
	if n := counted.count.Load() - before; n != 3*4 || f.InForce() != in {
		t.Errorf("three beats send %d commands", n)
	}
}

// list writes what processes say of themselves at a time.
func list(t *testing.T, c *redis.Client, n int, at time.Time) {
	t.Helper()
	fields := []any{}
	for i := range n {
		text := fmt.Sprintf(`{"host":"%s","pid":%d,"program":"p","start":"2026-01-01T00:00:00Z","at":"%s"}`,
			strings.Repeat("h", 64), i, at.UTC().Format(time.RFC3339Nano))
		fields = append(fields, fmt.Sprint("process", i), text)
	}
	if err := c.HSet(t.Context(), "p.seen:{p}:processes", fields...).Err(); err != nil {
		t.Fatal(err)
	}
}

// A fleet lists at most so many processes. One more is listed when others are gone, and removes them.
func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	fill := func(at time.Time) { list(t, c, fleet.MaxProcesses, at) }
	fill(time.Now().Add(time.Hour)) // by the clock of another server, which was the master before
	if all, err := f.Processes(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("%d are listed, %v", len(all), err)
	}
	fill(time.Now().Add(10 * time.Second))
	for range 6 {
		f.Beat()
	}
	all, err := f.Processes(t.Context())
	if n := c.HLen(t.Context(), "p.seen:{p}:processes").Val(); n != fleet.MaxProcesses || len(all) != fleet.MaxProcesses || err != nil {
		t.Errorf("%d are kept, %d listed, %v", n, len(all), err)
	}
	fill(time.Now().Add(-time.Minute))
	f.Beat()
	all, err = f.Processes(t.Context())
	if n := c.HLen(t.Context(), "p.seen:{p}:processes").Val(); n != 1 || len(all) != 1 || err != nil {
		t.Errorf("%d are kept, %d listed, %v", n, len(all), err)
	}
}

// However many fields others have written, a process reads some of them, goes on, and shows no more than there can be.
func TestForgedFields(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) { // no time passes, after which a process declares its rules again
		c, counted := client(t, server.Addr, 0)
		at := time.Now().UTC().Format(time.RFC3339Nano)
		for key, text := range map[string]string{
			"processes": fmt.Sprintf(`{"host":"h","pid":1,"program":"p","start":"%s","at":"%s"}`, at, at),
			"rules":     `{"limit":1}`,
			"sets":      fmt.Sprintf(`{"at":"%s","program":"other","rules":["%s"]}`, at, strings.Repeat("r", 64)),
		} {
			for i := 0; i < 100_000; i += 1000 {
				fields := []any{}
				for j := i; j < i+1000; j++ {
					fields = append(fields, fmt.Sprint("forged", j), text)
				}
				if err := c.HSet(t.Context(), "p.seen:{p}:"+key, fields...).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		f := of(c, "p")
		f.Hide()
		f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: `{"limit":2}`})
		for name, do := range map[string]func() error{
			"processes": func() error {
				all, err := f.Processes(t.Context())
				if len(all) > fleet.MaxProcesses {
					t.Errorf("%d processes are listed", len(all))
				}
				return err
			},
			"rules":  func() error { _, err := f.Rules(t.Context()); return err },
			"shared": func() error { _, err := f.Shared(t.Context()); return err },
			"beats": func() error {
				for range 6 {
					f.Beat()
				}
				return f.Status().Err
			},
		} {
			before := counted.count.Load()
			if err := do(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := counted.count.Load() - before; n > 450 {
				t.Errorf("%s: %d commands", name, n)
			}
		}
	})
}

// register declares n rules of a program.
func register(f *fleet.Fleet, program string, n int) {
	for i := range n {
		f.Register(fleet.Rule{Name: program, Tag: fmt.Sprint(i), Text: fmt.Sprintf(`{"name":"%s","limit":%d,"key":"%s"}`, program, i, strings.Repeat("k", 64))})
	}
}

// A process declares at most so many rules. The rules of several programs are written up to twice as many; then a process says that some are
// missing, and is still listed.
func TestRulesAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, want := range []int64{fleet.MaxRules, 2 * fleet.MaxRules, 2 * fleet.MaxRules} {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		f.Hide()
		var log lines
		f.LogTo(log.logger())
		register(f, fmt.Sprint("program", i), fleet.MaxRules+500)
		for range 3 {
			f.Beat()
		}
		if n := c.HLen(t.Context(), "p.seen:{p}:rules").Val(); n != want {
			t.Errorf("%d rules of %d programs are kept, want %d", n, i+1, want)
		}
		if n := strings.Count(log.String(), "tools do not see all"); n != i/2 {
			t.Errorf("process %d logs %s", i, log.String())
		}
		if all, err := f.Processes(t.Context()); err != nil || len(all) != i+1 {
			t.Errorf("%d processes are listed, %v", len(all), err)
		}
	}
}

// Rules that no process has declared for a day are forgotten when another process declares new ones.
func TestOldRulesGo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	later, _ := client(t, server.Addr, 25*time.Hour)
	before, after := of(c, "p"), of(later, "p")
	before.Hide()
	after.Hide()
	register(before, "before", 3)
	before.Beat()
	before.Beat()
	register(after, "after", 2)
	after.Beat()
	after.Beat()
	rules, err := after.Rules(t.Context())
	if err != nil || len(rules) != 2 || slices.ContainsFunc(rules, func(r fleet.Declared) bool { return strings.Contains(r.Text, "before") }) {
		t.Errorf("got %+v, %v", rules, err)
	}
	if n := c.HLen(t.Context(), "p.seen:{p}:rules").Val(); n != 2 {
		t.Errorf("%d rules are kept", n)
	}
}

// Settings that have ended make room, and are forgotten a day later.
func TestEndedSettingsMakeRoom(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	f := fleet.NewLocal(func() time.Time { return now }, nil)
	block := func(from, n int) error {
		e := fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "block", For: time.Minute}
		for i := range n {
			e.Settings = append(e.Settings, &fleet.Setting{Kind: fleet.Block, Rule: "r", Key: fmt.Sprint(from + i)})
		}
		_, err := f.Change(t.Context(), e)
		return err
	}
	if err := block(0, fleet.MaxSettings); err != nil {
		t.Fatal(err)
	}
	if err := block(fleet.MaxSettings, 1); !isUnfit(err) {
		t.Errorf("got %v", err)
	}
	now = now.Add(time.Minute)
	if err := block(fleet.MaxSettings, 1); err != nil {
		t.Error(err)
	}
	if n := len(slices.Collect(f.InForce().All())); n != 1 {
		t.Errorf("%d settings hold", n)
	}
	now = now.Add(25 * time.Hour)
	if err := block(0, 1); err != nil || len(f.KnownTexts()) != 1 {
		t.Errorf("%d settings are known, %v", len(f.KnownTexts()), err)
	}
}

// The fleet of a store in this process: a change holds at once, and only if nothing is in its way.
func TestLocal(t *testing.T) {
	f, other := fleet.NewLocal(time.Now, nil), fleet.NewLocal(time.Now, nil)
	change := func(want bool, each func(before, s *fleet.Setting) bool, s *fleet.Setting) {
		t.Helper()
		done, err := f.Change(t.Context(), fleet.Edit{What: "set", Settings: []*fleet.Setting{s}, Each: each})
		if done != want || err != nil {
			t.Errorf("got %t, %v", done, err)
		}
	}
	is0 := func(before, _ *fleet.Setting) bool { return before == nil || *before.Limit == 0 }
	change(true, is0, override("a", "", 0))
	change(true, is0, override("a", "", 1))
	change(false, is0, override("a", "", 2))
	change(true, nil, override("a", "ann", 3))
	change(true, nil, clear(override("a", "ann", 0)))
	change(true, is0, override("a", "ann", 4))
	if got := []int64{limit(f, "a", ""), limit(f, "a", "ann"), limit(f, "b", ""), limit(other, "a", "")}; !slices.Equal(got, []int64{1, 4, -1, -1}) {
		t.Errorf("got %d", got)
	}
	if all, err := f.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Settings a little beyond the bound are followed, as programs of another version may allow more.
func TestSettingsBeyondTheBound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	const n = fleet.MaxSettings + 500
	for i := 0; i < n; i += 500 {
		members, texts := []redis.Z{}, []any{}
		for j := i; j < i+500; j++ {
			name := fmt.Sprintf("override:r:{k%d}", j)
			members, texts = append(members, redis.Z{Score: float64(j + 1), Member: name}), append(texts, name, `{"limit":1}`)
		}
		c.ZAdd(t.Context(), "p.fleet:{p}:versions", members...)
		c.HSet(t.Context(), "p.fleet:{p}:settings", texts...)
	}
	c.MSet(t.Context(), "p.fleet:{p}:version", n, "p.fleet:{p}:epoch", "e")
	f := of(c, "p")
	if err := f.Follow(t.Context()); err != nil || len(f.KnownTexts()) != n {
		t.Errorf("%d settings are known, %v", len(f.KnownTexts()), err)
	}
	if _, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "set", Settings: []*fleet.Setting{override("s", "", 1)}}); !isUnfit(err) {
		t.Errorf("got %v", err)
	}
	set(t, f, "kim", clear(override("r", "k7", 0))) // an operator can make room
}

// A report that cannot be added to the history is missing there, and nothing else.
func TestHistoryOfAnotherType(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := redisstore.New(c, redisstore.WithStats()).Fleet("p")
	f.Hide()
	var log lines
	f.LogTo(log.logger())
	register(f, "program", 1)
	for i := range 5 {
		hash := time.Now().Unix()/5/24 + int64(i) // the beats may pass into the next one
		c.Set(t.Context(), fmt.Sprint("p.seen:{p}:history:", hash), "none", 0)
		f.Stats.Lock()
		f.Stats.Count(1, "r", "1m", "ann", fleet.Counts{Calls: 1})
		f.Stats.Unlock()
		f.Beat()
	}
	processes, err := f.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reports, err := f.Reports(t.Context(), processes)
	if log.String() != "" || len(reports) != 1 || err != nil {
		t.Errorf("got %+v, %v, logged %s", reports, err, log.String())
	}
}

// The history has the last 120 slots in a few commands, and from a time on it has only those that began since.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	last := time.Now().Unix() / 5
	for n := last - 130; n <= last; n++ {
		c.HSet(t.Context(), fmt.Sprint("p.seen:{p}:history:", n/24), fmt.Sprintf("%d calls r 1m", n), n, fmt.Sprintf("%d refused r 1m", n), 1, fmt.Sprintf("%d what r 1m", n), 1, "damaged", 1)
	}
	f := of(c, "p")
	history, err := f.History(t.Context(), time.Time{})
	if err != nil || len(history) != 120 {
		t.Fatalf("%d slots, %v", len(history), err)
	}
	for i, s := range history {
		n := s.At.Unix() / 5
		if i > 0 && s.At.Sub(history[i-1].At) != 5*time.Second {
			t.Fatalf("slot %d began at %s", i, s.At)
		}
		if n <= last && (len(s.Rules) != 1 || s.Rules[0].Counts != (fleet.Counts{Calls: n, Refused: 1})) { // later ones began since
			t.Fatalf("slot %d: %+v", i, s)
		}
	}
	since := history[110].At
	if some, err := f.History(t.Context(), since); err != nil || len(some) < 10 || !some[0].At.Equal(since) {
		t.Errorf("since %s: %d slots, %v", since, len(some), err)
	}
	if some, err := f.History(t.Context(), time.Now().Add(time.Minute)); err != nil || len(some) > 0 {
		t.Errorf("of the future: %v, %v", some, err)
	}
}

// A report of an outage counts in all slots of the outage, also for those who know these slots already. No slot has more than was possible.
func TestHistoryOfAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	for name, outage := range map[string]struct {
		seconds          float64
		calls, sum, most int64
	}{
		"beat": {5.5, 15, 15, 15}, "short": {9.5, 15, 15, 8}, "minutes": {300, 900, 900, 15}, "few": {300, 7, 7, 1}, "long": {1200, 2400, 1200, 10},
	} {
		report := &fleet.Report{Seconds: outage.seconds, Rules: []fleet.RuleCounts{{Name: name, Tag: "1m", Counts: fleet.Counts{Calls: outage.calls, Failed: 1}}}}
		if err := f.AddHistory(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		var sum, most int64
		history, err := f.History(t.Context(), time.Now().Add(-time.Minute))
		for _, slot := range history {
			for _, r := range slot.Rules {
				if r.Name == name {
					sum, most = sum+r.Calls, max(most, r.Calls)
				}
			}
		}
		if begun := outage.sum - sum; err != nil || begun < 0 || begun > 5*10 || name != "long" && begun > 0 || most != outage.most {
			t.Errorf("%s: %d calls, at most %d in a slot; error %v; want %d and %d", name, sum, most, err, outage.sum, outage.most)
		}
	}
}

// A change is in force in every process within two seconds after it was made. The time is virtual: it stands still while a
// process or the server works.
func TestInForceEverywhereWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, server.Addr, 0)
		tool := of(c, "p")
		var processes []*fleet.Fleet
		for range 3 {
			c, _ := client(t, server.Addr, 0)
			f := of(c, "p")
			register(f, "program", 1)
			processes = append(processes, f)
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		for n := range int64(20) {
			set(t, tool, "kim", override("r", "", n))
			time.Sleep(2 * time.Second)
			for i, f := range processes {
				if got := limit(f, "r", ""); got != n {
					t.Errorf("process %d: got the limit %d, want %d", i, got, n)
				}
			}
			time.Sleep(time.Duration(n) * 37 * time.Millisecond)
		}
	})
}
