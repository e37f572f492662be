package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// block returns the block of a key.
func block(key string, d time.Duration) *fleet.Setting {
	return &fleet.Setting{Kind: fleet.Block, Rule: "login", Key: key, Values: fleet.Values{Until: time.Now().Add(d)}}
}

// holding returns the names of the settings in force.
func holding(f *fleet.Fleet) (names []string) {
	for s := range f.InForce().All() {
		names = append(names, s.Name())
	}
	slices.Sort(names)
	return names
}

// processes are fleets that beat when the test says so, each with a client of its own.
type processes []*fleet.Fleet

func newProcesses(t *testing.T, server *redistest.Server, n int) (all processes) {
	for range n {
		c, _ := client(t, server.Addr, 0)
		f := of(c, "p")
		f.Hide()
		register(f, "program", 1)
		all = append(all, f)
	}
	all.beat(2)
	return all
}

func (all processes) beat(n int) {
	for range n {
		for _, f := range all {
			f.Beat()
		}
	}
}

// recovered asks, and returns what the processes have answered after five beats, as those take that have lost nothing.
func (all processes) recovered(t *testing.T, tool *fleet.Fleet) fleet.Recovery {
	t.Helper()
	word, err := tool.AskKnown(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.beat(5)
	r, err := tool.Known(t.Context(), word)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What any process knows comes back, of each setting the newest version, so what was cleared stays cleared. What was set after the loss wins. One process
// missed the last changes before the loss, and another began after it.
func TestRecover(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := newProcesses(t, server, 3)
	c, _ := client(t, server.Addr, 0)
	tool := of(c, "p")
	set(t, tool, "kim", override("login", "", 50), block("ann", time.Hour), block("bob", time.Hour), block("joe", time.Hour), block("zoe", 2*time.Second))
	all.beat(1)
	set(t, tool, "kim", clear(block("bob", 0)), override("search", "", 7), override("login", "", 60))
	all[0].Beat()
	all[1].Beat()
	server.Do("FLUSHALL")
	all.beat(2)
	late := newProcesses(t, server, 1)
	set(t, tool, "eve", override("search", "", 9), clear(block("joe", 0)))
	all.beat(1)
	time.Sleep(2 * time.Second)
	fresh, _ := client(t, server.Addr, 0)
	tool = of(fresh, "p")
	all = append(all, late...)
	word, err := tool.AskKnown(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all[1:].beat(5)
	if r, err := tool.Known(t.Context(), word); err != nil || len(r.Answered) != 3 || len(r.Silent) != 1 {
		t.Errorf("%d processes have answered, and %d are silent: %v", len(r.Answered), len(r.Silent), err)
	}
	all.beat(5)
	r, err := tool.Known(t.Context(), word)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range r.Settings {
		found = append(found, fmt.Sprint(s.Name(), " ", s.By))
	}
	if want := []string{"block:login:{ann} kim", "override:login kim"}; !slices.Equal(found, want) || len(r.Answered) != 4 {
		t.Errorf("got %v of %d processes, want %v", found, len(r.Answered), want)
	}
	if err := tool.Recover(t.Context(), fleet.Actor{By: "lee", Reason: "loss"}, r.Settings); err != nil {
		t.Fatal(err)
	}
	all.beat(1)
	want := []string{"block:login:{ann}", "override:login", "override:search"}
	for i, f := range append(all, tool) {
		if got := holding(f); !slices.Equal(got, want) || f.Status().Lost > 0 || limit(f, "login", "") != 60 || limit(f, "search", "") != 9 {
			t.Errorf("in process %d hold %v, lost %d, login %d", i, got, f.Status().Lost, limit(f, "login", ""))
		}
	}
	if changes, err := tool.Changes(t.Context()); err != nil || changes[0].What != "recover" || changes[0].By != "lee" {
		t.Errorf("got %+v, %v", changes, err)
	}
}

// The settings come back after each kind of loss. A process that has lost nothing answers, and says nothing.
func TestRecoverFromEachLoss(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){
		"nothing":  func(*redistest.Server) {},
		"FLUSHALL": func(s *redistest.Server) { s.Do("FLUSHALL") },
		"kill -9":  (*redistest.Server).Restart,
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			all := newProcesses(t, server, 3)
			set(t, all[0], "kim", override("login", "", 50), block("ann", time.Hour))
			all.beat(1)
			lose(server)
			all.beat(2)
			c, _ := client(t, server.Addr, 0)
			tool := of(c, "p")
			r, want := all.recovered(t, tool), 2
			if name == "nothing" {
				want = 0
			}
			if len(r.Settings) != want || len(r.Answered) != 3 || len(r.Silent) > 0 {
				t.Fatalf("got %+v", r)
			}
			if err := tool.Recover(t.Context(), fleet.Actor{By: "lee"}, r.Settings); err != nil {
				t.Fatal(err)
			}
			all.beat(1)
			for _, f := range all {
				if got := holding(f); !slices.Equal(got, []string{"block:login:{ann}", "override:login"}) || f.Status().Lost > 0 {
					t.Errorf("got %v, lost %d", got, f.Status().Lost)
				}
			}
		})
	}
}

// Many settings of many processes are written once, in small commands. A word is answered once, and a process answers no more often than every five
// seconds, whoever writes words.
func TestManyAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := newProcesses(t, server, 3)
	var many []*fleet.Setting
	for i := range 900 { // an answer of 1,000 is spread
		many = append(many, override("login", fmt.Sprint("k", i), int64(i)))
	}
	set(t, all[0], "kim", many...)
	all.beat(1)
	server.Do("FLUSHALL")
	all.beat(2)
	c, _ := client(t, server.Addr, 0)
	tool := of(c, "p")
	asked := time.Now()
	word, err := tool.AskKnown(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.beat(2)
	if n := server.Do("HLEN p.seen:{p}:known:" + word); n != "904" { // three processes, and that they know the same
		t.Errorf("the answers have %s fields", n)
	}
	if r, err := tool.Known(t.Context(), word); err != nil || len(r.Settings) != 900 || len(r.Answered) != 3 {
		t.Errorf("got %d settings, %v", len(r.Settings), err)
	}
	other, err := tool.AskKnown(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.beat(2)
	if n := server.Do("EXISTS p.seen:{p}:known:" + other); n != "0" && time.Since(asked) < 4*time.Second {
		t.Error("a second word is answered at once")
	}
}

// What hostile programs answer breaks nothing, and what cannot be a setting is left out.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	tool := of(c, "p")
	process := newProcesses(t, server, 1)[0]
	c.Set(t.Context(), "p.seen:{p}:recover", strings.Repeat("w", 1<<20), 0)
	processes{process}.beat(5)
	if n := server.Do("KEYS p.seen:{p}:known*"); n != "" {
		t.Errorf("a word of 1 MB is answered: %.100s", n)
	}
	key := "p.seen:{p}:known:w"
	far := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	c.HSet(t.Context(), key, "1 block:login:{ann}", `{"until":"`+far+`"}`, "0 block:login:{bob}", `{"until":"`+far+`"}`, "x", "y", "", "",
		"2 other:login", `{}`, "3 override:login", `{"limit":"x"}`, "4 override:"+strings.Repeat("r", 5000), `{"limit":1}`,
		"99999999999999999999 override:r", `{"limit":1}`, "5 override:s", strings.Repeat(" ", 1<<20), "process:nobody", "")
	for i := range 100 {
		fields := make([]any, 0, 2000)
		for j := range 1000 {
			fields = append(fields, fmt.Sprint("junk ", i, " ", j), "")
		}
		c.HSet(t.Context(), key, fields...)
	}
	r, err := tool.Known(t.Context(), "w")
	if err != nil || len(r.Settings) > 1 || len(r.Answered) > 0 {
		t.Errorf("got %d settings, %v", len(r.Settings), err)
	}
}

// What programs need permission for suffices to note pauses and to answer.
func TestPermissionsOfPrograms(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL SETUSER program on nopass ~p.seen:* %R~p.fleet:* +hmget +hscan +mget +zrangebyscore +time +hdel +hexists +hlen +hset +pexpire")
	c := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "program", Password: "any", DisableIdentity: true})
	defer c.Close()
	f := of(c, "p")
	f.Hide()
	register(f, "far", 1)
	admin, _ := client(t, server.Addr, 0)
	tool := of(admin, "p")
	set(t, tool, "kim", block("ann", time.Hour))
	processes{f}.beat(2)
	for i := range fleet.MaxPauses + 200 { // some are removed
		f.NotePause("far", fmt.Sprint("k", i), time.Hour+time.Duration(i)*time.Minute, "Retry-After: 9", func(context.Context, time.Duration) {})
	}
	processes{f}.beat(20)
	f.ForgetPause("far", "k1199")
	processes{f}.beat(5)
	if all, more, err := tool.Pauses(t.Context()); err != nil || len(all) < fleet.MaxPauses/2 || more == 0 {
		t.Errorf("got %d pauses and %d more, %v", len(all), more, err)
	}
	admin.Del(t.Context(), "p.fleet:{p}:settings", "p.fleet:{p}:versions", "p.fleet:{p}:version", "p.fleet:{p}:epoch")
	f.Beat()
	if r := (processes{f}).recovered(t, tool); len(r.Settings) != 1 || len(r.Answered) != 1 {
		t.Errorf("got %+v", r)
	}
	if n := server.Do("ACL LOG"); n != "" {
		t.Errorf("denied: %s", n)
	}
}
