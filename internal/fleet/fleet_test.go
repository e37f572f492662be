package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// entries is a hook that fails the test if a command of a client moves many entries: names, or fields with their texts.
type entries struct {
	t     *testing.T
	count atomic.Int64
	ahead time.Duration // of the server's clock, as the client sees it
	beats bool          // all commands are those of beats
}

func (e *entries) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *entries) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		e.check(cmd)
		return err
	}
}

func (e *entries) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			e.check(cmd)
		}
		return err
	}
}

func (e *entries) check(cmd redis.Cmder) {
	e.count.Add(1)
	if n := len(cmd.Args()); cmd.Name() == "evalsha" && n > 15+100+100*(3+2) { // at most 100 names to remove, and 100 edits of one setting
		e.t.Errorf("a script has %d arguments", n)
	}
	switch c := cmd.(type) {
	case *redis.TimeCmd:
		c.SetVal(c.Val().Add(e.ahead))
	case *redis.Cmd:
		if n := moved(c); n > e.most(c) {
			e.t.Errorf("%s %v moves %d entries", c.Name(), c.Args()[1], n)
		}
	}
}

// most returns how many entries a command may move. A scan gets a few more than it asks for.
func (e *entries) most(c *redis.Cmd) int {
	switch {
	case c.Name() != "hscan" || e.beats:
		return 100
	case strings.Contains(fmt.Sprint(c.Args()[1]), ":history:"):
		return 2080
	}
	return 540
}

// moved returns how many entries a command has moved.
func moved(c *redis.Cmd) int {
	reply, _ := c.Val().([]any)
	switch c.Name() {
	case "hset", "zadd":
		return (len(c.Args()) - 2) / 2
	case "hscan":
		if len(reply) == 2 {
			reply, _ = reply[1].([]any)
		}
		return len(reply) / 2
	}
	return max(len(c.Args())-2, len(reply))
}

// client returns a client of a server whose clock is ahead of this process's.
func client(t *testing.T, addr string, ahead time.Duration) (*redis.Client, *entries) {
	c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	e := &entries{t: t, ahead: ahead}
	c.AddHook(e)
	return c, e
}

// of returns the fleet of a prefix, as another process has it.
func of(c redis.UniversalClient, prefix string) *fleet.Fleet {
	return redisstore.New(c).(interface{ Fleet(string) *fleet.Fleet }).Fleet(prefix)
}

func override(rule, key string, limit int64) *fleet.Setting {
	return &fleet.Setting{Kind: fleet.Override, Rule: rule, Key: key, AllKeys: key == "", Values: fleet.Values{Limit: &limit}}
}

func set(t *testing.T, f *fleet.Fleet, by string, settings ...*fleet.Setting) {
	t.Helper()
	if done, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: by}, What: "set", Settings: settings}); err != nil || !done {
		t.Fatalf("set: %t, %v", done, err)
	}
}

func clear(s *fleet.Setting) *fleet.Setting {
	return &fleet.Setting{Kind: s.Kind, Rule: s.Rule, Key: s.Key, AllKeys: s.AllKeys, Cleared: true}
}

// limit returns the limit in force for a key, or -1.
func limit(f *fleet.Fleet, rule, key string) int64 {
	of := f.InForce().Of(rule)
	s := cmp.Or(of.OfKey(key).Override, of.All)
	if s == nil {
		return -1
	}
	return *s.Limit
}

func isUnfit(err error) bool {
	_, ok := errors.AsType[*fleet.Unfit](err)
	return ok
}

// Many processes write at the same time, and others follow. In the end all know the same, and nothing was lost.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	want := map[string]int64{}
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range 6 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		writers.Go(func() {
			for i := range 25 {
				key, n := fmt.Sprint("k", w, "-", rand.IntN(10)), int64(w*100+i)
				if _, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: "ann"}, What: "set", Settings: []*fleet.Setting{override("r", key, n)}}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				want[key] = n
				mu.Unlock()
			}
		})
	}
	var followers []*fleet.Fleet
	for range 20 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		followers = append(followers, f)
		for range 3 {
			f.Beat()
		}
	}
	writers.Wait()
	for _, f := range followers {
		f.Beat()
		for key, n := range want {
			if got := limit(f, "r", key); got != n {
				t.Fatalf("%s: got %d, want %d", key, got, n)
			}
		}
		if len(f.KnownTexts()) != len(want) || !reflect.DeepEqual(f.KnownTexts(), followers[0].KnownTexts()) {
			t.Fatalf("got %v", f.KnownTexts())
		}
	}
	changes, err := followers[0].Changes(t.Context())
	if err != nil || len(changes) != 150 || changes[0].By != "ann" || changes[0].What != "set" || changes[0].After == nil {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// A follower that beats now and then knows what a model knows, whatever is set, cleared, and ended.
func TestFollowsModel(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	other, _ := client(t, server.Addr, 0)
	writer, follower := of(c, "p"), of(other, "p")
	model := map[string]int64{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		key := fmt.Sprint("k", random.IntN(30))
		switch random.IntN(5) {
		case 0:
			set(t, writer, "", clear(override("r", key, 0)))
			delete(model, key)
		case 1:
			gone := override("r", key, 3)
			gone.Until = writer.Now().Add(-time.Minute)
			set(t, writer, "", gone)
			delete(model, key)
		case 2:
			follower.Beat()
			for i := range 30 {
				key := fmt.Sprint("k", i)
				want, there := model[key]
				if got := limit(follower, "r", key); there && got != want || !there && got != -1 {
					t.Fatalf("%s: got %d, want %d %t", key, got, want, there)
				}
			}
		default:
			n := random.Int64N(100)
			set(t, writer, "", override("r", key, n))
			model[key] = n
		}
	}
}

// A process keeps what it knows in force if the store loses its settings, until an import or their ends. It says so.
func TestLoss(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){
		"flushed": func(s *redistest.Server) { s.Do("FLUSHALL") },
		"new":     func(s *redistest.Server) { s.Stop(); s.Restart() },
		"another": func(s *redistest.Server) {
			s.Do("SET p.fleet:{p}:epoch other")
			s.Do("DEL p.fleet:{p}:settings p.fleet:{p}:versions")
		},
		"older import": func(s *redistest.Server) {
			s.Do("SET p.fleet:{p}:epoch 1000.other")
			s.Do("DEL p.fleet:{p}:settings p.fleet:{p}:versions")
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			c, _ := client(t, server.Addr, 0)
			tools, _ := client(t, server.Addr, -time.Minute) // so that a later import is later by all clocks
			process, idle, tool := of(c, "p"), of(tools, "p"), of(tools, "p")
			var log lines
			idle.LogTo(log.logger())
			idle.Beat()
			if err := tool.Import(t.Context(), fleet.Actor{By: "kim"}, nil); err != nil { // the epoch is that of an import
				t.Fatal(err)
			}
			soon := override("soon", "", 7)
			soon.Until = tool.Now().Add(time.Hour)
			set(t, tool, "kim", override("r", "", 1), override("r", "ann", 2), soon)
			process.Beat()
			lose(server)
			for range 3 { // the pool's connections to the old server
				process.Beat()
				idle.Beat()
			}
			if log.String() != "" || idle.Status().Lost != 0 {
				t.Errorf("a process that knew no settings logs %s", log.String())
			}
			if got := []int64{limit(process, "r", "x"), limit(process, "r", "ann"), limit(process, "soon", "x")}; !slices.Equal(got, []int64{1, 2, 7}) {
				t.Fatalf("got %d", got)
			}
			if process.Status().Lost != 3 {
				t.Errorf("got %+v", process.Status())
			}
			fresh, _ := client(t, server.Addr, 0)
			tool = of(fresh, "p")
			set(t, tool, "kim", override("r", "", 10)) // holds, although the rest is lost
			process.Beat()
			if got := []int64{limit(process, "r", "x"), limit(process, "r", "ann")}; !slices.Equal(got, []int64{10, 2}) || process.Status().Lost != 2 {
				t.Fatalf("got %d, %+v", got, process.Status())
			}
			kept := override("r", "bob", 5)
			kept.By, kept.Reason, kept.At = "eve", "abuse", tool.Now().Add(-time.Hour)
			old := override("r", "", 99)
			old.At = tool.Now().Add(-time.Hour)
			if err := tool.Import(t.Context(), fleet.Actor{By: "kim"}, []*fleet.Setting{kept, old}); err != nil {
				t.Fatal(err)
			}
			process.Beat()
			got := []int64{limit(process, "r", "x"), limit(process, "r", "ann"), limit(process, "r", "bob"), limit(process, "soon", "")}
			if !slices.Equal(got, []int64{10, 10, 5, -1}) || process.Status().Lost != 0 {
				t.Errorf("got %d, %+v", got, process.Status())
			}
			if text := process.KnownTexts()["override:r:{bob}"]; !strings.Contains(text, `"by":"eve","reason":"abuse"`) {
				t.Errorf("got %s", text)
			}
		})
	}
}

// A store with an older copy of its data loses what came after the copy. New settings hold.
func TestRestored(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	process := of(c, "p")
	set(t, process, "", override("a", "", 1), override("b", "", 1))
	copied := map[string]string{}
	for _, key := range []string{"settings", "versions", "version", "epoch"} {
		copied[key] = c.Dump(t.Context(), "p.fleet:{p}:"+key).Val()
	}
	set(t, process, "", override("a", "", 2))
	set(t, process, "", clear(override("b", "", 0)))
	for key, dump := range copied {
		c.RestoreReplace(t.Context(), "p.fleet:{p}:"+key, 0, dump)
	}
	process.Beat()
	if limit(process, "a", "") != 2 || limit(process, "b", "") != -1 || process.Status().Lost != 1 {
		t.Fatalf("got %d, %d, %+v", limit(process, "a", ""), limit(process, "b", ""), process.Status())
	}
	other, _ := client(t, server.Addr, 0)
	writer := of(other, "p")
	if err := writer.Follow(t.Context()); err != nil || limit(writer, "b", "") != 1 {
		t.Fatalf("got %d, %v", limit(writer, "b", ""), err)
	}
	set(t, writer, "", override("a", "", 3))
	process.Beat()
	if limit(process, "a", "") != 3 || process.Status().Lost != 0 {
		t.Errorf("got %d, %+v", limit(process, "a", ""), process.Status())
	}
}

// group are three processes whose beats the test counts, and a tool.
type group struct {
	*testing.T
	processes []*fleet.Fleet
	tool      *fleet.Fleet
}

func newGroup(t *testing.T, client func() redis.UniversalClient) *group {
	g := &group{T: t, tool: of(client(), "p")}
	for i := range 3 {
		f := of(client(), "p")
		f.Hide()
		f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: fmt.Sprintf(`{"limit":%d}`, min(i, 1))})
		g.processes = append(g.processes, f)
	}
	g.beat(2)
	return g
}

func (g *group) beat(times int) {
	for range times {
		for _, f := range g.processes {
			f.Beat()
		}
	}
}

// reach lets each process beat until its client has reached the server.
func (g *group) reach() {
	g.Helper()
	for _, f := range g.processes {
		for deadline := time.Now().Add(time.Minute); f.Beat() && f.Status().Err != nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				g.Fatalf("the server is away: %v", f.Status().Err)
			}
		}
	}
}

// require checks the rules, with the processes that declare them, and the limits that hold in each process.
func (g *group) require(rules map[string]int, limits map[string]int64) {
	g.Helper()
	declared, err := g.tool.Rules(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	got := map[string]int{}
	for _, r := range declared {
		got[r.Text] = len(r.Processes)
	}
	all, err := g.tool.Processes(g.Context())
	if !maps.Equal(got, rules) || len(all) != len(g.processes) || err != nil {
		g.Errorf("got the rules %v of %d processes, %v; want %v", got, len(all), err, rules)
	}
	for i, f := range g.processes {
		for rule, want := range limits {
			if got := limit(f, rule, ""); got != want {
				g.Errorf("process %d, rule %s: got the limit %d, want %d", i, rule, got, want)
			}
		}
	}
}

// When a replica has taken over, the first beat that reaches it finds all settings, and writes what the replica lacks. Meanwhile what is known
// stays in force.
func TestFailover(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	replica := server.StartReplica(t)
	sentinels := server.StartSentinels(t, "limits", 3, 500, 1)
	g := newGroup(t, func() redis.UniversalClient {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "limits", SentinelAddrs: sentinels.Addrs(), ReadTimeout: time.Second})
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	soon := override("soon", "", 7)
	soon.Until = g.tool.Now().Add(time.Hour)
	set(t, g.tool, "kim", override("r", "", 5), soon)
	g.beat(1)
	limits := map[string]int64{"r": 5, "soon": 7}
	g.require(map[string]int{`{"limit":0}`: 1, `{"limit":1}`: 2}, limits)
	replica.WaitFor("HLEN p.fleet:{p}:settings", "2")
	server.Stop()
	g.beat(1)
	for _, f := range g.processes {
		if limit(f, "r", "") != 5 || limit(f, "soon", "") != 7 {
			t.Errorf("while the server is away: got %d, %d", limit(f, "r", ""), limit(f, "soon", ""))
		}
	}
	replica.WaitFor("ROLE", "master")
	replica.Do("DEL p.seen:{p}:rules p.seen:{p}:sets p.seen:{p}:processes") // as if they had not been copied yet
	g.reach()
	g.require(map[string]int{`{"limit":0}`: 1, `{"limit":1}`: 2}, limits)
	set(t, g.tool, "kim", override("r", "", 6))
	g.beat(1)
	g.require(map[string]int{`{"limit":0}`: 1, `{"limit":1}`: 2}, map[string]int64{"r": 6, "soon": 7})
	for _, f := range g.processes {
		if f.Status().Lost != 0 {
			t.Errorf("got %+v", f.Status())
		}
	}
}

// A server that is restored from a copy some seconds old has older words of the processes. The first beat that reaches it writes the new ones, and
// their rules. Settings that came after the copy stay in force.
func TestRestoredCopy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := newGroup(t, func() redis.UniversalClient { c, _ := client(t, server.Addr, 0); return c })
	set(t, g.tool, "kim", override("r", "", 5))
	g.beat(1)
	server.Do("SAVE")
	g.processes[0].Register(fleet.Rule{Name: "new", Tag: "1m", Text: `{"limit":9}`})
	set(t, g.tool, "kim", override("r", "", 6), override("new", "", 7))
	for deadline := time.Now().Add(time.Minute); server.Do("HLEN p.seen:{p}:rules") != "3" && time.Now().Before(deadline); {
		g.beat(1) // new rules are written some time after those before
	}
	g.beat(5)
	rules, limits := map[string]int{`{"limit":0}`: 1, `{"limit":1}`: 2, `{"limit":9}`: 1}, map[string]int64{"r": 6, "new": 7}
	g.require(rules, limits)
	server.Stop()
	server.Restart()
	if n := server.Do("HLEN p.seen:{p}:rules"); n != "2" {
		t.Fatalf("the copy has %s rules", n)
	}
	g.reach()
	g.require(rules, limits)
	for _, f := range g.processes {
		if f.Status().Lost != 2 {
			t.Errorf("got %+v", f.Status())
		}
	}
}

// After the store has lost its settings, a process says that it follows only after it has read the new ones, whatever their versions.
func TestBehindAfterALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := newGroup(t, func() redis.UniversalClient { c, _ := client(t, server.Addr, 0); return c })
	require := func(when string, want int) {
		t.Helper()
		if all, behind, err := g.tool.Behind(t.Context()); len(all) != 3 || len(behind) != want || err != nil {
			t.Errorf("%s: %d of %d processes are behind, %v; want %d", when, len(behind), len(all), err, want)
		}
	}
	set(t, g.tool, "kim", override("r", "", 5), override("s", "", 5))
	require("set", 3)
	g.beat(1)
	require("followed", 0)
	server.Do("FLUSHALL")
	g.beat(1)
	for when, change := range map[string]func() error{
		"imported": func() error { return g.tool.Import(t.Context(), fleet.Actor{By: "kim"}, nil) },
		"set anew": func() error {
			server.Do("DEL p.fleet:{p}:epoch p.fleet:{p}:version p.fleet:{p}:settings p.fleet:{p}:versions")
			c, _ := client(t, server.Addr, 0)
			g.tool = of(c, "p")
			_, err := g.tool.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: "kim"}, What: "set", Settings: []*fleet.Setting{override("r", "", 6)}})
			return err
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		require(when, 3)
		g.beat(1)
		require(when+" and followed", 0)
	}
}

// failing is a hook that fails commands on a key.
type failing struct{ key atomic.Pointer[string] }

func (*failing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if key := h.key.Load(); key != nil && cmd.Name() == "hset" && cmd.Args()[1] == *key {
				return errors.New("connection reset")
			}
		}
		return next(ctx, cmds)
	}
}

// If the server fails after a process has written which rules it has, and before it has written them, it writes them later.
func TestRulesThatFailToBeWritten(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	h := new(failing)
	c.AddHook(h)
	f := of(c, "p")
	f.Hide()
	h.key.Store(new("p.seen:{p}:rules"))
	f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: "{}"})
	for range 3 {
		f.Beat()
	}
	if sets, rules := server.Do("HLEN p.seen:{p}:sets"), server.Do("HLEN p.seen:{p}:rules"); sets != "1" || rules != "0" {
		t.Fatalf("%s sets, %s rules", sets, rules)
	}
	h.key.Store(nil)
	f.Beat()
	if rules, err := f.Rules(t.Context()); err != nil || len(rules) != 1 {
		t.Errorf("got %+v, %v", rules, err)
	}
}

// Rules and processes are known again at the beat after a server lost them.
func TestSeenAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var processes []*fleet.Fleet
	for i := range 3 {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		f.Hide()
		f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: fmt.Sprintf(`{"limit":%d}`, min(i, 1))})
		for range 2 {
			f.Beat()
		}
		processes = append(processes, f)
	}
	c, _ := client(t, server.Addr, 0)
	tool := of(c, "p")
	check := func() {
		t.Helper()
		rules, err := tool.Rules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, r := range rules {
			got[r.Text] = len(r.Processes)
			if d := tool.Now().Sub(r.Seen); d < -time.Second || d > time.Minute {
				t.Errorf("seen %s ago", d)
			}
		}
		if want := map[string]int{`{"limit":0}`: 1, `{"limit":1}`: 2}; !maps.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		all, err := tool.Processes(t.Context())
		if err != nil || len(all) != 3 || all[0].Program != "github.com/ratelimit-go/ratelimit/internal/fleet.test" && all[0].Program == "" || all[0].PID == 0 {
			t.Errorf("got %+v, %v", all, err)
		}
	}
	check()
	server.Do("FLUSHALL")
	for _, f := range processes {
		f.Beat()
	}
	check()
	// One of the keys is lost. A replica that takes over may have one rule less, and no process.
	rule, _, _ := strings.Cut(server.Do("HKEYS p.seen:{p}:rules"), "\n")
	for _, lost := range []string{
		"DEL p.seen:{p}:rules", "DEL p.seen:{p}:sets", "DEL p.seen:{p}:rules p.seen:{p}:sets", "HDEL p.seen:{p}:rules " + rule,
	} {
		for _, f := range processes {
			f.Beat() // sees what there is
		}
		if server.Do(lost); strings.HasPrefix(lost, "HDEL") {
			server.Do("DEL p.seen:{p}:processes")
		}
		for _, f := range processes {
			f.Beat()
		}
		check()
	}
	for _, key := range strings.Fields(server.Do("KEYS *")) {
		if ttl := server.Do("PTTL " + key); ttl == "-1" {
			t.Errorf("%s does not expire", key)
		}
	}
}

// Nothing depends on the clocks of processes: settings are made, hold and end by the store's clock.
func TestClocks(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 10 * time.Minute, 0} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			c, _ := client(t, server.Addr, ahead)
			f := of(c, "p")
			f.Hide()
			f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: "{}"})
			f.Beat()
			f.Beat()
			right := time.Now().Add(ahead) // the store's clock
			short, long := override("short", "", 1), override("long", "", 1)
			short.Until, long.Until = time.Now().Add(300*time.Millisecond), time.Now().Add(time.Minute) // by the process's clock
			exact := override("exact", "", 1)
			exact.Until = right.Add(time.Hour).Round(0) // an instant
			set(t, f, "kim", short, long, exact)
			other, _ := client(t, server.Addr, ahead)
			follower := of(other, "p")
			follower.Beat()
			for _, p := range []*fleet.Fleet{f, follower} {
				if limit(p, "long", "") != 1 || limit(p, "exact", "") != 1 || limit(p, "short", "") != 1 && time.Now().Before(short.Until) {
					t.Fatal("a setting does not hold")
				}
			}
			settings, err := f.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends := map[string]time.Duration{"short": 300 * time.Millisecond, "long": time.Minute, "exact": time.Hour}
			for _, s := range settings {
				if d := s.Until.Sub(right) - ends[s.Rule]; d.Abs() > 20*time.Second {
					t.Errorf("%s ends at %s, %s off", s.Rule, s.Until, d)
				}
				if d := s.At.Sub(right); d.Abs() > 20*time.Second {
					t.Errorf("%s was made at %s", s.Rule, s.At)
				}
			}
			for _, p := range []*fleet.Fleet{f, follower} {
				redistest.Eventually(t, "the short setting ends", func() bool { p.Beat(); return limit(p, "short", "") == -1 })
				if limit(p, "long", "") != 1 {
					t.Errorf("after the end: %d", limit(p, "long", ""))
				}
			}
			all, err := follower.Processes(t.Context())
			if err != nil || len(all) != 2 || (all[0].Ahead+ahead).Abs() > 20*time.Second || all[0].Start.Sub(right).Abs() > 20*time.Minute {
				t.Errorf("got %+v, %v", all, err)
			}
		})
	}
}

// A fleet keeps at most so many settings; some are kept for actors. Cleared ones take no room, and are forgotten.
func TestBounds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, e := client(t, server.Addr, 0)
	f := of(c, "p")
	var all []*fleet.Setting
	for i := range fleet.MaxByProgram {
		all = append(all, override("r", fmt.Sprint("k", i), int64(i)))
	}
	set(t, f, "", all...)
	change := func(by string, settings ...*fleet.Setting) error {
		_, err := f.Change(t.Context(), fleet.Edit{Actor: fleet.Actor{By: by}, What: "set", Settings: settings})
		return err
	}
	if err := change("", override("r", "more", 1)); !isUnfit(err) {
		t.Fatalf("got %v", err)
	}
	if err := change("", override("r", "k1", 5)); err != nil {
		t.Fatal(err)
	}
	var more []*fleet.Setting
	for i := range fleet.MaxSettings - fleet.MaxByProgram {
		more = append(more, override("s", fmt.Sprint("k", i), int64(i)))
	}
	set(t, f, "kim", more...)
	if err := change("kim", override("r", "more", 1)); !isUnfit(err) {
		t.Fatalf("got %v", err)
	}
	other, counted := client(t, server.Addr, 0)
	follower := of(other, "p")
	follower.Beat()
	if n := len(follower.KnownTexts()); n != fleet.MaxSettings || limit(follower, "r", "k8999") != 8999 || limit(follower, "r", "k1") != 5 {
		t.Errorf("%d settings", n)
	}
	t.Logf("%d commands to write %d settings, %d to read them", e.count.Load(), fleet.MaxSettings, counted.count.Load())
	for i := range 3 * fleet.MaxSettings / 1000 { // other keys are set and cleared
		var some, cleared []*fleet.Setting
		for j := range 1000 {
			s := more[j]
			if i > 0 {
				s = override("t", fmt.Sprint(i, "-", j), 1)
				some = append(some, s)
			}
			cleared = append(cleared, clear(s))
		}
		if i > 0 {
			set(t, f, "kim", some...)
		}
		set(t, f, "kim", cleared...)
	}
	if n := c.HLen(t.Context(), "p.fleet:{p}:settings").Val(); n > 2*fleet.MaxSettings+1000 {
		t.Errorf("%d settings are kept", n)
	}
	follower.Beat()
	if !reflect.DeepEqual(follower.KnownTexts(), f.KnownTexts()) {
		t.Errorf("%d and %d settings", len(follower.KnownTexts()), len(f.KnownTexts()))
	}
	if n := c.LLen(t.Context(), "p.fleet:{p}:changes").Val(); n > fleet.MaxChanges {
		t.Errorf("%d changes", n)
	}
	long := override(strings.Repeat("x", 900), "", 1)
	long.Reason = strings.Repeat("y", 200)
	if err := change(strings.Repeat("z", 200), long); err == nil {
		t.Error("a long setting is set")
	}
}

// The clients of a cluster, a ring and sentinels find the keys of a fleet. The store without scripts has one, too.
func TestServers(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	a, b := redistest.Start(t), redistest.Start(t)
	sentinels := b.StartSentinels(t, "limits", 1, 10_000, 0)
	for name, c := range map[string]redis.UniversalClient{
		"cluster":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}),
		"ring":     redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr, "b": b.Addr}}),
		"resp2":    redis.NewClient(&redis.Options{Addr: a.Addr, Protocol: 2, PoolSize: 1}),
		"sentinel": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "limits", SentinelAddrs: sentinels.Addrs()}),
		"plain":    redis.NewClient(&redis.Options{Addr: a.Addr}),
	} {
		of := of
		if name == "plain" {
			of = func(c redis.UniversalClient, prefix string) *fleet.Fleet {
				return plain.New(c).Fleet("plain " + prefix)
			}
		}
		t.Run(name, func(t *testing.T) {
			defer c.Close()
			for _, prefix := range []string{"p", "q", "other", "ratelimit"} {
				f, follower := of(c, prefix), of(c, prefix)
				set(t, f, "kim", override("r", "", 4), override("r", "ann", 5))
				follower.Beat()
				follower.Beat()
				if limit(follower, "r", "") != 4 || limit(follower, "r", "ann") != 5 {
					t.Errorf("%s: got %d, %d, %+v", prefix, limit(follower, "r", ""), limit(follower, "r", "ann"), follower.Status())
				}
				if all, err := f.Processes(t.Context()); err != nil || len(all) == 0 {
					t.Errorf("got %v, %v", all, err)
				}
			}
		})
	}
}

// The beat ends with the fleet, and with the client. While the server is away it goes on, and a server that is back is seen.
func TestBeat(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Register(fleet.Rule{Name: "r", Tag: "1m", Text: "{}"})
	f.Register(fleet.Rule{Name: "s", Tag: "1m", Text: `{"s":1}`})
	server.WaitFor("HLEN p.seen:{p}:processes", "1")
	server.WaitFor("HLEN p.seen:{p}:rules", "2")
	other, _ := client(t, server.Addr, 0)
	set(t, of(other, "p"), "", override("r", "", 3))
	redistest.Eventually(t, "the limit is in force", func() bool { return limit(f, "r", "") == 3 })
	var log lines
	f.LogTo(log.logger())
	server.Stop()
	f.Register(fleet.Rule{Name: "late", Tag: "1m", Text: `{"late":1}`}) // while the server is away
	if f.Beat(); f.Status().Err == nil || log.String() != "" {
		t.Errorf("the server is away: got %+v, logged %s", f.Status(), log.String())
	}
	server.Restart()
	server.WaitFor("HLEN p.seen:{p}:processes", "1")
	server.WaitFor("HLEN p.seen:{p}:rules", "3")
	if limit(f, "r", "") != 3 {
		t.Error("the setting does not hold any more")
	}
	_ = c.Close()
	if f.Beat() {
		t.Error("a beat goes on after the client was closed")
	}
}

// flood writes settings that no program can have written, from a version on.
func flood(t *testing.T, c *redis.Client, from, settings int) {
	t.Helper()
	for i := from; i < from+settings; i += 1000 {
		members, texts := []redis.Z{}, []any{}
		for j := i; j < i+1000; j++ {
			name := fmt.Sprint("override:", j)
			members, texts = append(members, redis.Z{Score: float64(j), Member: name}), append(texts, name, `{"limit":1}`)
		}
		if err := errors.Join(c.ZAdd(t.Context(), "p.fleet:{p}:versions", members...).Err(), c.HSet(t.Context(), "p.fleet:{p}:settings", texts...).Err()); err != nil {
			t.Fatal(err)
		}
	}
	c.Set(t.Context(), "p.fleet:{p}:version", from+settings, 0)
}

// If others write more settings than there can be, a process follows some of them, says so, and reads them once. An operator can get rid of them.
func TestTooManySettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, counted := client(t, server.Addr, 0)
	f := of(c, "p")
	var log lines
	f.LogTo(log.logger())
	set(t, f, "", override("r", "", 3))
	for round := range 3 {
		flood(t, c, 10+round*50_000, 50_000)
		for range 2 {
			before := counted.count.Load()
			if err := f.Follow(context.Background()); err != nil || limit(f, "r", "") != 3 || len(f.KnownTexts()) > 30_000 {
				t.Fatalf("got %v, %d, %d", err, limit(f, "r", ""), len(f.KnownTexts()))
			}
			if n := counted.count.Load() - before; n > 700 {
				t.Errorf("following sends %d commands", n)
			}
		}
		before := counted.count.Load()
		if f.Beat(); counted.count.Load()-before > 30 {
			t.Errorf("a beat without news sends %d commands", counted.count.Load()-before)
		}
	}
	said := f.Status()
	if said.Err != nil || len(said.Malformed) != 1 || strings.Count(log.String(), "p.fleet:{p}:versions") != 1 {
		t.Errorf("got %+v, logged %s", said, log.String())
	}
	c.Del(t.Context(), "p.fleet:{p}:settings", "p.fleet:{p}:versions")
	other, _ := client(t, server.Addr, 0)
	right := override("r", "", 4)
	right.At = time.Now()
	if err := of(other, "p").Import(t.Context(), fleet.Actor{By: "kim"}, []*fleet.Setting{right}); err != nil {
		t.Fatal(err)
	}
	if err := f.Follow(context.Background()); err != nil || limit(f, "r", "") != 4 || len(f.KnownTexts()) != 1 || len(f.Status().Malformed) > 0 {
		t.Errorf("got %d, %d settings, %+v", limit(f, "r", ""), len(f.KnownTexts()), f.Status())
	}
}

// Of many settings that cannot be read, and of long names, a process keeps and logs some.
func TestManyMalformed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	var log lines
	f.LogTo(log.logger())
	names := []string{strings.Repeat("x", 2000)}
	for i := range 500 {
		names = append(names, fmt.Sprint("other:", i))
	}
	for i, name := range names {
		c.HSet(t.Context(), "p.fleet:{p}:settings", name, `{"limit":1}`)
		c.ZAdd(t.Context(), "p.fleet:{p}:versions", redis.Z{Score: float64(i + 1), Member: name})
	}
	c.Set(t.Context(), "p.fleet:{p}:version", 501, 0)
	if err := f.Follow(context.Background()); err != nil || len(f.Status().Malformed) != 101 || strings.Count(log.String(), "\n") != 101 {
		t.Errorf("got %v, %d, logged %d lines", err, len(f.Status().Malformed), strings.Count(log.String(), "\n"))
	}
}

// What this process cannot read stays as it was.
func TestMalformed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	var log lines
	f.LogTo(log.logger())
	set(t, f, "", override("r", "", 3))
	for _, text := range []string{"x", "", "5", `{"limits":1}`, `{"limit":"1"}`, `{"limit":1e30}`, `{"limit":0.5}`, `{"limit":5}{"limit":6}`, strings.Repeat(" ", 2000)} {
		c.HSet(t.Context(), "p.fleet:{p}:settings", "override:r", text, "block:r:{ann}", `{}`, "other:r", `{"limit":1}`)
		c.ZAdd(t.Context(), "p.fleet:{p}:versions", redis.Z{Score: float64(c.Incr(t.Context(), "p.fleet:{p}:version").Val()), Member: "override:r"},
			redis.Z{Score: 1000, Member: "block:r:{ann}"}, redis.Z{Score: 1001, Member: "other:r"})
		c.Set(t.Context(), "p.fleet:{p}:version", 1001+c.Incr(t.Context(), "n").Val(), 0)
		f.Beat()
		if limit(f, "r", "") != 3 {
			t.Errorf("%.20s: got %d, %+v", text, limit(f, "r", ""), f.Status())
		}
	}
	if s := f.Status(); len(s.Malformed) == 0 || s.Err != nil {
		t.Errorf("got %+v", s)
	}
	if n := strings.Count(log.String(), "\n"); n != 3 { // one for each name
		t.Errorf("%d lines are logged:\n%s", n, log.String())
	}
	server.Do("FLUSHALL")
	f.Beat()
	if s := f.Status(); len(s.Malformed) > 0 {
		t.Errorf("the store has no settings any more, and the status is still %+v", s)
	}
}

// Processes and changes of later versions may say more. What this version knows of them is read.
func TestFieldsOfLaterVersions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	at := time.Now().UTC().Format(time.RFC3339Nano)
	c.HSet(t.Context(), "p.seen:{p}:processes", "later", fmt.Sprintf(`{"host":"h","pid":7,"program":"p","start":"%s","at":"%s","mood":{"good":true}}`, at, at))
	c.LPush(t.Context(), "p.fleet:{p}:changes", fmt.Sprintf(`{"at":"%s","by":"kim","what":"set","after":{"limit":5,"colour":"red"},"mood":1}`, at))
	if all, err := f.Processes(t.Context()); err != nil || len(all) != 1 || all[0].PID != 7 {
		t.Errorf("got %+v, %v", all, err)
	}
	if all, err := f.Changes(t.Context()); err != nil || len(all) != 1 || all[0].By != "kim" || *all[0].After.Limit != 5 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Two programs that share the counts of an unnamed rule are told.
func TestTwoPrograms(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Hide()
	var log lines
	f.LogTo(log.logger())
	rule := fleet.Rule{Name: "svc.Service.Get", Tag: "1m", Unnamed: true, Text: `{"limit":3}`}
	f.Register(rule)
	f.Beat()
	f.Beat()
	if log.String() != "" {
		t.Errorf("got %s", log.String())
	}
	set := server.Do("HVALS p.seen:{p}:sets")
	c.HSet(t.Context(), "p.seen:{p}:sets", "other", strings.Replace(set, `"program":"`, `"program":"other/`, 1))
	for range 10 {
		f.Beat()
	}
	if n := strings.Count(log.String(), "WithPrefix"); n != 1 || !strings.Contains(log.String(), "rule=svc.Service.Get") {
		t.Errorf("got %s", log.String())
	}
}
