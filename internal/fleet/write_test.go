package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// before is a hook that calls do before the command that writes settings.
type before struct{ do func() }

func (before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			b.do()
		}
		return next(ctx, cmd)
	}
}

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" {
			b.do()
		}
		return next(ctx, cmds)
	}
}

// scripts returns how many scripts the server has begun to run.
func scripts(server *redistest.Server) (n int) {
	for line := range strings.Lines(server.Do("INFO commandstats")) {
		if _, calls, ok := strings.Cut(line, "cmdstat_evalsha:calls="); ok {
			_, _ = fmt.Sscan(strings.Split(calls, ",")[0], &n)
		}
	}
	return n
}

// Processes that set different names at the same time do not make each other try again: each edit is one script.
func TestWritersOfDifferentNames(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var writers sync.WaitGroup
	for w := range 8 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		set(t, f, "", override("r", fmt.Sprint("first", w), 1))
		writers.Go(func() {
			for i := range 20 {
				e := fleet.Edit{What: "set", Settings: []*fleet.Setting{override("r", fmt.Sprint(w, "-", i), 1)}}
				if done, err := f.Change(t.Context(), e); err != nil || !done || limit(f, "r", e.Settings[0].Key) != 1 {
					t.Error(done, err)
				}
			}
		})
	}
	writers.Wait()
	if n := scripts(server); n != 8*21 {
		t.Errorf("%d scripts write %d settings", n, 8*21)
	}
	if n, version := server.Do("ZCARD p.fleet:{p}:versions"), server.Do("GET p.fleet:{p}:version"); n != "168" || version != n {
		t.Errorf("%s versions, the last one is %s", n, version)
	}
}

// What a process sets at the same time is written together, each edit with its own change for people.
func TestEditsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	var first sync.Once
	entered, release := make(chan bool), make(chan bool)
	c.AddHook(before{func() { first.Do(func() { close(entered); <-release }) }})
	var writers sync.WaitGroup
	write := func(i int) {
		writers.Go(func() { set(t, f, fmt.Sprint("actor", i), override("r", fmt.Sprint(i), int64(i))) })
	}
	write(0)
	<-entered
	for i := range 50 {
		write(i + 1)
	}
	redistest.Eventually(t, "all wait", func() bool { return f.Waiting() == 51 })
	close(release)
	writers.Wait()
	if n := scripts(server); n != 2 {
		t.Errorf("%d scripts write 51 edits", n)
	}
	changes, err := f.Changes(t.Context())
	if err != nil || len(changes) != 51 || changes[0].After == nil || len(f.KnownTexts()) != 51 {
		t.Errorf("%d changes, %v, %d settings", len(changes), err, len(f.KnownTexts()))
	}
}

// If another process sets a name of an edit just before it is written, the edit is planned again by what the other one set. The edits of other
// names that are written together with it are not. It is the same without scripts.
func TestNameThatOthersSet(t *testing.T) {
	t.Parallel()
	withoutScripts := func(c redis.UniversalClient, prefix string) *fleet.Fleet { return plain.New(c).Fleet(prefix) }
	for name, c := range map[string]struct {
		of   func(redis.UniversalClient, string) *fleet.Fleet
		args []string
	}{
		"script": {of, nil}, "plain": {withoutScripts, nil}, "no scripts on the server": {of, []string{"--rename-command", "EVALSHA", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			server, of := redistest.Start(t, c.args...), c.of
			c, _ := client(t, server.Addr, 0)
			other, _ := client(t, server.Addr, 0)
			f, rival := of(c, "p"), of(other, "p")
			set(t, f, "kim", override("r", "same", 1))
			var once sync.Once
			c.AddHook(before{func() {
				once.Do(func() { set(t, rival, "eve", override("r", "same", 2), override("r", "more", 3)) })
			}})
			var seen []int64
			e := fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "set", Settings: []*fleet.Setting{override("r", "same", 0)}}
			e.Each = func(before, s *fleet.Setting) bool {
				limit := *before.Limit + 10
				seen, s.Limit = append(seen, *before.Limit), &limit
				return true
			}
			if done, err := f.Change(t.Context(), e); err != nil || !done || fmt.Sprint(seen) != "[1 2]" {
				t.Errorf("%t, %v; what was before: %d", done, err, seen)
			}
			changes, err := f.Changes(t.Context())
			if err != nil || len(changes) != 3 || *changes[0].Before.Limit != 2 || *changes[0].After.Limit != 12 {
				t.Errorf("got %+v, %v", changes, err)
			}
			rival.Beat()
			for _, f := range []*fleet.Fleet{f, rival} {
				if limit(f, "r", "same") != 12 || limit(f, "r", "more") != 3 {
					t.Errorf("got %d, %d", limit(f, "r", "same"), limit(f, "r", "more"))
				}
			}
		})
	}
}

// Processes that write at the same time do not pass the bound together, and fill all the room there is.
func TestBoundOfManyWriters(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	set(t, of(c, "p"), "kim", overrides("r", fleet.MaxSettings-10)...)
	var written, unfit atomic.Int64
	var writers sync.WaitGroup
	for w := range 8 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		writers.Go(func() {
			for i := range 5 {
				e := fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "set", Settings: []*fleet.Setting{override("s", fmt.Sprint(w, "-", i), 1)}}
				switch done, err := f.Change(t.Context(), e); {
				case done && err == nil:
					written.Add(1)
				case isUnfit(err):
					unfit.Add(1)
				default:
					t.Error(done, err)
				}
			}
		})
	}
	writers.Wait()
	if n := server.Do("HLEN p.fleet:{p}:settings"); n != fmt.Sprint(fleet.MaxSettings) || written.Load() != 10 || unfit.Load() != 30 {
		t.Errorf("%d are written, %d do not fit, the store has %s", written.Load(), unfit.Load(), n)
	}
}

// The settings expire two days after the last one has ended, and never if one has no end: also if a process sets one while another sets another.
func TestExpiryOfSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	other, _ := client(t, server.Addr, 0)
	f, rival := of(c, "p"), of(other, "p")
	var rivals func()
	c.AddHook(before{func() {
		if do := rivals; do != nil {
			rivals = nil
			do()
		}
	}})
	until := func(key string, d time.Duration) *fleet.Setting {
		s := override("r", key, 1)
		s.Until = time.Now().Add(d)
		return s
	}
	const hour, never = time.Hour, time.Duration(0)
	for i, step := range []struct {
		rival, set *fleet.Setting
		want       time.Duration
	}{
		{nil, until("a", hour), 49 * hour},
		{nil, until("b", 5*hour), 53 * hour},
		{nil, clear(override("r", "b", 0)), 49 * hour},
		{until("c", 9*hour), until("d", 2*hour), 57 * hour},
		{override("r", "e", 1), until("f", hour), never},
		{nil, until("g", hour), never},
		{clear(override("r", "e", 0)), override("r", "h", 1), never},
		{nil, clear(override("r", "h", 0)), 57 * hour},
		{until("c", hour), until("i", hour), 57 * hour}, // what others set meanwhile is not known
		{nil, until("j", hour), 50 * hour},
	} {
		if step.rival != nil {
			rivals = func() { set(t, rival, "eve", step.rival) }
		}
		set(t, f, "kim", step.set)
		for _, key := range []string{"settings", "versions", "version", "epoch"} {
			got := c.PTTL(t.Context(), "p.fleet:{p}:"+key).Val()
			if isNever := got < 0; isNever != (step.want == never) || !isNever && (got > step.want || got < step.want-2*hour) {
				t.Errorf("step %d: %s expires in %s; want %s", i, key, got, step.want)
			}
		}
	}
}

// A setting that another process has made again is not removed by one that takes its forerunner for over.
func TestMadeAgainMeanwhile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	short := override("r", "x", 1)
	short.Until = time.Now().Add(time.Hour)
	set(t, of(c, "p"), "kim", short)
	later, _ := client(t, server.Addr, 26*time.Hour)
	rival, _ := client(t, server.Addr, 26*time.Hour)
	f, other := of(later, "p"), of(rival, "p")
	var once sync.Once
	later.AddHook(before{func() { once.Do(func() { set(t, other, "kim", override("r", "x", 2)) }) }})
	set(t, f, "kim", override("r", "y", 3))
	if all, err := of(c, "p").List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("the store has %v, %v", all, err)
	}
}

// An edit of many settings is written in parts, of which the last one has its change for people. An import begins its epoch with the last part, so
// nobody misses a setting meanwhile.
func TestEditsOfManySettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	follower, _ := client(t, server.Addr, 0)
	f, process := of(c, "p"), of(follower, "p")
	set(t, f, "", override("kept", "", 7))
	process.Beat()
	parts := 0
	c.AddHook(before{func() {
		parts++
		if process.Beat(); limit(process, "kept", "") != 7 || process.Status().Lost > 0 {
			t.Errorf("before part %d: got %d, %+v", parts, limit(process, "kept", ""), process.Status())
		}
	}})
	all := overrides("r", 250)
	set(t, f, "kim", all...)
	for i := range all {
		all[i] = override("r", fmt.Sprint("k", i), int64(i)+1)
		all[i].At = time.Now().Add(time.Minute)
	}
	if err := f.Import(t.Context(), fleet.Actor{By: "kim"}, all); err != nil {
		t.Fatal(err)
	}
	changes, err := f.Changes(t.Context())
	if err != nil || len(changes) != 2 || changes[1].Keys != 250 || changes[0].What != "import" || changes[0].Keys != 251 {
		t.Errorf("got %+v, %v", changes, err)
	}
	process.Beat()
	if parts != 6 || len(process.KnownTexts()) != 251 || limit(process, "r", "k249") != 250 || process.Status().Lost > 0 {
		t.Errorf("%d parts; %d settings, %+v", parts, len(process.KnownTexts()), process.Status())
	}
	long := override("r", strings.Repeat("k", 1000), 1)
	if done, err := f.Change(t.Context(), fleet.Edit{What: "set", Settings: append(overrides("s", 250), long)}); done || !isUnfit(err) || limit(f, "s", "k1") != -1 {
		t.Errorf("a part of an edit that does not fit is written: %t, %v", done, err)
	}
}

// People see who made an edit, and the caller learns what holds, if the edit ends after its first part.
func TestEditThatEndsMidway(t *testing.T) {
	t.Parallel()
	c, _ := client(t, redistest.Start(t).Addr, 0)
	f, asked := of(c, "p"), 0
	each := func(_, s *fleet.Setting) bool {
		asked++
		return asked <= 250+100 // it is asked for all before the first part, and again for each part
	}
	done, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "set", Settings: overrides("r", 250), Each: each})
	if done || !isUnfit(err) || !strings.Contains(err.Error(), "100 of 250") {
		t.Errorf("got %t, %v", done, err)
	}
	if changes, err := f.Changes(t.Context()); err != nil || len(changes) != 1 || changes[0].By != "kim" || changes[0].Keys != 250 {
		t.Errorf("got %+v, %v", changes, err)
	}
	if all, err := f.List(t.Context()); err != nil || len(all) != 100 {
		t.Errorf("%d settings, %v", len(all), err)
	}
}

// What the store has lost leaves room for an import, because it does not hold afterwards.
func TestImportAfterALargeLoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	set(t, f, "kim", overrides("r", fleet.MaxSettings-10)...)
	server.Do("FLUSHALL")
	given := overrides("s", 200)
	for _, s := range given {
		s.At = time.Now()
	}
	if err := f.Import(t.Context(), fleet.Actor{By: "kim"}, given); err != nil {
		t.Fatal(err)
	}
	if all, err := f.List(t.Context()); err != nil || len(all) != 200 {
		t.Errorf("%d settings, %v", len(all), err)
	}
}
