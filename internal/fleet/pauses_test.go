package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// paused are pauses as the tests of notes write them: "far ann 2h".
func paused(t *testing.T, f *fleet.Fleet) (all []string, more int) {
	t.Helper()
	notes, more, err := f.Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		all = append(all, fmt.Sprintf("%s %s %.0f", n.Rule, n.Subject, n.Until.Sub(f.Now()).Hours()))
	}
	return all, more
}

// pausing is a process that notes pauses, and remembers which of them it made again.
type pausing struct {
	*fleet.Fleet
	mu    sync.Mutex
	again map[string]time.Duration
}

func newPausing(t *testing.T, server *redistest.Server) *pausing {
	c, _ := client(t, server.Addr, 0)
	p := &pausing{Fleet: of(c, "p"), again: map[string]time.Duration{}}
	p.Hide() // the test beats
	p.Register(fleet.Rule{Name: "far", Text: "{}"})
	p.beat(2)
	return p
}

func (p *pausing) beat(n int) {
	for range n {
		p.Beat()
	}
}

func (p *pausing) note(subject string, d time.Duration, farSide bool) {
	by := ""
	if farSide {
		by = "Retry-After: 9"
	}
	p.NotePause("far", subject, d, by, func(_ context.Context, left time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again[subject] = left
	})
}

// Pauses of all subjects are noted, also one of everybody.
func TestPausesOfSubjects(t *testing.T) {
	t.Parallel()
	p := newPausing(t, redistest.Start(t))
	var want []string
	for _, text := range []string{"", "ann", "a{%:}\x1b", strings.Repeat("{", 300)} {
		subject := key.Subject(text)
		p.note(subject, 2*time.Hour, true)
		want = append(want, fmt.Sprintf("far %s 2", subject))
	}
	p.beat(1)
	slices.Sort(want)
	if got, more := paused(t, p.Fleet); !slices.Equal(got, want) || more != 0 {
		t.Errorf("got %q and %d more, want %q", got, more, want)
	}
}

// Of a key the pause that ends last is noted, whoever noted it; one by Pause replaces others. Who ends it removes the note, and the process that made it
// forgets it: it does not come back after a loss. What has not ended does, with the marker.
func TestPauses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b, tool := newPausing(t, server), newPausing(t, server), newPausing(t, server)
	require := func(want ...string) {
		t.Helper()
		for _, f := range []*pausing{a, b, tool} {
			if got, more := paused(t, f.Fleet); !slices.Equal(got, want) || more != 0 {
				t.Fatalf("got %v and %d more, want %v", got, more, want)
			}
		}
	}
	require()
	a.note("ann", 2*time.Hour, true)
	a.note("bob", 2*time.Hour, true)
	b.note("ann", time.Hour, true)
	a.Beat()
	b.Beat()
	require("far ann 2", "far bob 2")
	b.note("ann", 3*time.Hour, true)
	a.note("bob", time.Hour, false)
	a.note("eve", 100*time.Millisecond, true)
	a.Beat()
	b.Beat()
	if notes, _, _ := tool.Pauses(t.Context()); len(notes) == 0 || !notes[0].FarSide || notes[1].FarSide || !strings.Contains(notes[0].By, " on ") {
		t.Errorf("got %+v", notes)
	}
	time.Sleep(100 * time.Millisecond)
	require("far ann 3", "far bob 1")
	a.beat(5)
	if n := server.Do("HLEN p.seen:{p}:pauses"); n != "2" {
		t.Errorf("%s notes are left; one is over", n)
	}
	tool.ForgetPause("far", "bob")
	if err := tool.TellPauses(t.Context()); err != nil {
		t.Fatal(err)
	}
	require("far ann 3")
	a.beat(5)
	server.Do("FLUSHALL")
	require()
	a.beat(5)
	require()
	b.beat(5)
	require("far ann 3")
	redistest.Eventually(t, "the pause is made again", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.again) > 0 })
	if left := b.again["ann"]; len(a.again) > 0 || len(b.again) != 1 || left > 3*time.Hour || left < 2*time.Hour {
		t.Errorf("a made %v again, and b %v", a.again, b.again)
	}
}

// A pause that is ended while others are made again is not made again.
func TestPauseEndedDuringARenewal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := newPausing(t, server)
	again, others := make(chan string, 2), map[string]string{"ann": "bob", "bob": "ann"}
	for subject, other := range others {
		p.NotePause("far", subject, time.Hour, "", func(context.Context, time.Duration) {
			p.ForgetPause("far", other)
			again <- subject
		})
	}
	p.beat(5)
	server.Do("FLUSHALL")
	p.beat(1)
	first := <-again
	select {
	case second := <-again:
		t.Errorf("%s ended the pause of %s, which was made again", first, second)
	case <-time.After(100 * time.Millisecond):
	}
}

// A pause that moves by less than a second is not noted again.
func TestPausesThatHardlyMove(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, counted := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Hide()
	register(f, "far", 1)
	note := func(d time.Duration) {
		f.NotePause("far", "ann", d, "Retry-After: 9", func(context.Context, time.Duration) {})
	}
	note(time.Hour)
	f.Beat()
	f.Beat()
	f.Beat() // it is the third of five
	sent := func() int64 { before := counted.count.Load(); f.Beat(); return counted.count.Load() - before }
	idle := sent()
	note(time.Hour + 100*time.Millisecond)
	note(time.Minute)
	f.Beat() // the fifth says more
	f.Beat()
	if n := sent(); n != idle {
		t.Errorf("%d commands are sent where %d are by an idle process", n, idle)
	}
	note(time.Hour + 10*time.Second)
	if n := sent(); n <= idle {
		t.Error("a pause that moved is not noted")
	}
}

// Of too many pauses those stay that end last, and readers learn that there are more. One beat writes at most a hundred.
func TestManyPauses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	fleets := map[string]*fleet.Fleet{"memory": fleet.NewLocal(time.Now, nil), "redis": newPausing(t, server).Fleet}
	for name, f := range fleets {
		t.Run(name, func(t *testing.T) {
			const n = 2500
			for _, i := range rand.Perm(n) {
				f.NotePause("far", fmt.Sprint("k", i), time.Duration(i+1)*time.Minute, "Retry-After: 9", func(context.Context, time.Duration) {})
			}
			for beats := 0; beats < 40 && !f.IsLocal(); beats++ {
				f.Beat()
			}
			notes, more, err := f.Pauses(t.Context())
			if err != nil || len(notes) > fleet.MaxPauses || len(notes) < fleet.MaxPauses || more < n/4 || more > 2*n {
				t.Fatalf("got %d pauses and %d more, %v", len(notes), more, err)
			}
			for _, p := range notes {
				if p.Until.Sub(f.Now()) < (n-fleet.MaxPauses-200)*time.Minute {
					t.Fatalf("%s stays, which ends in %s", p.Subject, p.Until.Sub(f.Now()))
				}
			}
		})
	}
}

// A far side's pause of a minute or more is told once for a rule and ten minutes, with the number of keys: in the log, and in the changes. The notes of
// others may say anything else, and no reader believes them.
func TestFarSideIsTold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	process := newPausing(t, server)
	for name, f := range map[string]*fleet.Fleet{"memory": fleet.NewLocal(time.Now, nil), "redis": process.Fleet} {
		t.Run(name, func(t *testing.T) {
			var log lines
			f.LogTo(log.logger())
			for i, d := range []time.Duration{time.Second, time.Minute, time.Hour, 2 * time.Hour, 90 * time.Minute} {
				for _, rule := range []string{"far", "near"} {
					f.NotePause(rule, fmt.Sprint("k", i/2), d, "Retry-After: 9", func(context.Context, time.Duration) {})
				}
				f.NotePause("own", "k", 10*d, "", func(context.Context, time.Duration) {})
			}
			redistest.Eventually(t, "a line for each rule", func() bool { return strings.Count(log.String(), "level=WARN") == 2 })
			if !strings.Contains(log.String(), `rule=near keys=2 for=2h by="Retry-After: 9"`) {
				t.Errorf("got %s", log.String())
			}
			if !f.IsLocal() {
				f.Beat()
			}
			all, err := f.Changes(t.Context())
			if err != nil || len(all) != 2 {
				t.Fatalf("got %+v, %v", all, err)
			}
			for _, c := range all {
				if c.What != "pause" || !c.FarSide || c.For != "2h" || c.Keys != 2 || !strings.Contains(c.By, " on ") || c.Rule != "far" && c.Rule != "near" {
					t.Errorf("got %+v", c)
				}
			}
		})
	}
}

// What broken or hostile programs write where every program may write neither breaks nor fills a reader.
func TestHostileNotes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Hide()
	now := time.Now().UTC()
	note := func(until time.Time) string {
		return fmt.Sprintf(`{"since":%q,"until":%q,"by":"x 1 on \u001b[2Jy"}`, now.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	far := func(by, what, d string) string {
		const text = `{"at":%q,"by":"%s","what":%q,"rule":"r\n","key":"k","for":%q,"permits":7,"reason":"all is well"}`
		return fmt.Sprintf(text, now.Format(time.RFC3339), by, what, d)
	}
	hour := note(now.Add(time.Hour))
	c.HSet(t.Context(), "p.seen:{p}:pauses", "far:{ann}", hour, "far:{bob}", note(now.Add(-time.Hour)), "far:{eve}", note(now.AddDate(5, 0, 0)),
		"far:{a\nb}", hour, "fa\x1br:{zoe}", hour, "far", hour, "", "", "far:{joe}", "x", "far:{moe}", strings.Repeat(" ", 1<<20),
		"far:{"+strings.Repeat("k", 5000)+"}", hour)
	c.HSet(t.Context(), "p.seen:{p}:farside", "1", far("kim", "clear", "2h"), "2", far(`x 1 on \u001b[2Jy`, "clear", "2h"), "3", far("x 1 on y", "", "soon"),
		"4", "", "5", strings.Repeat("x", 1<<20))
	notes, more, err := f.Pauses(t.Context())
	if err != nil || more != 0 || len(notes) != 1 || notes[0].Subject != "ann" || strings.ContainsAny(notes[0].By, "\x1b") {
		t.Errorf("got %+v, %d, %v", notes, more, err)
	}
	all, err := f.Changes(t.Context())
	if err != nil || len(all) != 1 || all[0].What != "pause" || all[0].Permits != 0 || all[0].Reason == "all is well" ||
		strings.ContainsAny(all[0].By+all[0].Rule, "\x1b\n") {
		t.Errorf("got %+v, %v", all, err)
	}
}
