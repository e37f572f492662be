package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var (
	login  = ratelimit.Rule{Name: "login", Key: "{user}", Limit: 5, Per: time.Hour}
	guess  = ratelimit.Rule{Name: "guess", Key: "{user}", Limit: 1, Per: time.Minute, Block: time.Hour}
	export = ratelimit.Rule{Name: "export", Limit: 1, Per: time.Minute, Block: time.Hour}
)

// useBlocks registers the rules and blocks some keys, by the tool and by refusals.
func useBlocks(t *testing.T, server *redistest.Server, f *program) {
	t.Helper()
	for _, rule := range []ratelimit.Rule{login, guess, export} {
		f.known(map[string]string{rule.Name: ruleText(rule)})
	}
	f.allow(2, guess, "ann")
	f.allow(2, guess, "a\x1b{b")
	f.allow(2, export, "")
	f.allow(1, guess, "bob") // not refused
	require(t, server.Addr, done, "→ blocked until", "block", "login", "eve", "-for", "1h", "-reason", "guesses passwords")
}

// blocked lists all blocked keys, whoever blocked them.
func TestBlocked(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require(t, server.Addr, failed, "no prefix on this server", "blocked")
	f := newFleet(t, server.Addr)
	useBlocks(t, server, f)
	text, status := ctl(t, server.Addr, "blocked")
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		cells := strings.Fields(line)
		got = append(got, cells[0]+" "+cells[1])
	}
	if want := "export everybody, guess a%1B%7Bb, guess ann, login eve"; status != done || strings.Join(got, ", ") != want {
		t.Errorf("status %d, %s\nwant %s", status, text, want)
	}
	if strings.Count(text, "the rule's block=") != 3 || !strings.Contains(text, username()) || !strings.Contains(text, "guesses passwords") {
		t.Errorf("got %s", text)
	}
	if text, _ := ctl(t, server.Addr, "blocked", "login"); !strings.Contains(text, "eve") || strings.Contains(text, "ann") {
		t.Errorf("got %s", text)
	}
	require(t, server.Addr, failed, `has used a rule "nosuch"`, "blocked", "nosuch")
	require(t, server.Addr, done, `"byRule": true`, "-json", "blocked", "guess")
}

// unblock says what it found, and that it does not end a block that a rule's block= began.
func TestUnblockSaysWhatItFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	useBlocks(t, server, f)
	require(t, server.Addr, done, "login eve: blocked until 20", "unblock", "login", "eve")
	require(t, server.Addr, done, "login ann: not blocked → not blocked", "unblock", "login", "ann")
	require(t, server.Addr, done, "guess bob: not blocked → not blocked", "unblock", "guess", "bob")
	require(t, server.Addr, done, "the block= of rule guess still refuses ann until 20", "unblock", "guess", "ann")
	require(t, server.Addr, done, "1 count forgotten", "reset", "guess", "ann")
	if text, _ := ctl(t, server.Addr, "blocked", "guess"); strings.Contains(text, "ann") {
		t.Errorf("after reset: %s", text)
	}
}

// override clear says what it cleared.
func TestClearSaysWhatItFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	require(t, server.Addr, done, "login: no override → no override", "override", "clear", "login")
	require(t, server.Addr, done, "limit=9", "override", "set", "login", "-limit", "9", "-mode", "shadow", "-forever")
	require(t, server.Addr, done, "login: limit=9 mode=shadow for ever → no override", "override", "clear", "login")
	require(t, server.Addr, done, "login: no override → no override", "override", "clear", "login")
}

// override clear leaves an override that it cannot read.
func TestClearReadsFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	require(t, server.Addr, done, "limit=9", "override", "set", "login", "-limit", "9", "-forever")
	server.Do("ACL SETUSER default -hmget")
	require(t, server.Addr, failed, "'hmget'", "override", "clear", "login")
	server.Do("ACL SETUSER default +hmget")
	require(t, server.Addr, done, "login  all  limit=9", "override", "list")
}

// blocked looks only at a part of many keys, and says if the user lacks the permission to look.
func TestBlockedIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	useBlocks(t, server, f)
	states, err := f.StateKeys(ratelimit.Request{Rule: guess, Key: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	text := f.client.Get(t.Context(), strings.Replace(states[0], "}:", "}:block:", 1)).Val()
	_, err = f.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 3000 {
			p.Set(t.Context(), key.BlockOf(key.State("ratelimit", "guess", fmt.Sprint("user", i), "1m")), text, time.Hour)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	require(t, server.Addr, done, "there may be more keys that the block= of a rule refuses", "blocked")
	server.Do("ACL SETUSER default -scan")
	require(t, server.Addr, done, "this user may not run SCAN", "blocked")
}

func TestBlockedOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	declare(t, client, "ratelimit", ruleText(guess))
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
	for i := range 20 {
		for range 2 {
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: guess, Key: fmt.Sprint("user", i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text, status := ctl(t, cluster[0].Addr, "blocked"); status != done || strings.Count(text, "guess  user") != 20 {
		t.Errorf("status %d, %s", status, text)
	}
}

// A key of more than 128 bytes can be given in the cut form that top and errors show.
func TestLongKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	useBlocks(t, server, f)
	long := strings.Repeat("a", 100) + "{\x1b" + strings.Repeat("b", 100)
	shown := key.Escape(long)
	f.allow(2, login, long)
	require(t, server.Addr, done, "2 of 5", "inspect", "login", shown, "-shown")
	require(t, server.Addr, done, "0 of 5", "inspect", "login", shown) // without -shown, this is another key
	require(t, server.Addr, done, "1 count forgotten", "reset", "login", shown, "-shown")
	require(t, server.Addr, done, "→ blocked until", "block", "login", shown, "-shown", "-for", "1h")
	other := newFleet(t, server.Addr)
	if err := other.Ping(t.Context()); err != nil { // reads blocks
		t.Fatal(err)
	}
	d, err := other.Allow(t.Context(), ratelimit.Request{Rule: login, Key: long})
	if err != nil || d.Allowed || d.Violations[0].Key != shown {
		t.Errorf("got %+v, error %v", d, err)
	}
	require(t, server.Addr, done, shown, "blocked", "login")
	require(t, server.Addr, done, "→ not blocked", "unblock", "login", shown, "-shown")
	require(t, server.Addr, misuse, "expected a whole key", "unblock", "login", shown[:120], "-shown")
}

// Blocks of a rule in shadow mode refuse nobody, and block and blocked say so.
func TestBlocksInShadowMode(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login), "guess": ruleText(guess)})
	const note = "login is in mode shadow: its calls would be refused, and pass"
	for _, mode := range []string{"shadow", "enforce"} {
		require(t, server.Addr, done, "mode="+mode, "override", "set", "login", "-mode", mode, "-for", "1h")
		for _, key := range []string{"ann", "bob"} {
			text, _ := ctl(t, server.Addr, "block", "login", key, "-for", "1h")
			if strings.Contains(text, note) != (mode == "shadow") {
				t.Errorf("mode %s: got %s", mode, text)
			}
		}
		require(t, server.Addr, done, "→ blocked", "block", "guess", "ann", "-for", "1h")
		text, _ := ctl(t, server.Addr, "blocked")
		if n := strings.Count(text, note); n != map[string]int{"shadow": 1}[mode] || strings.Contains(text, "guess is in mode") {
			t.Errorf("mode %s: got %s", mode, text)
		}
		text, _ = ctl(t, server.Addr, "-json", "blocked")
		if n := strings.Count(text, `"mode": "shadow"`); n != map[string]int{"shadow": 2}[mode] {
			t.Errorf("mode %s: got %s", mode, text)
		}
	}
}

// Neither block nor blocked says that calls pass if some of them are refused: under another rule of the name, or with another key.
func TestBlocksPartlyInShadowMode(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{
		"p.T.M 1h:{ip}": `{"name":"p.T.M","unnamed":true,"key":"{ip}","limit":5,"per":3600000000000}`,
		"p.T.M 2h:{ip}": `{"name":"p.T.M#2","unnamed":true,"key":"{ip}","limit":50,"per":7200000000000,"mode":1}`,
		"login":         ruleText(login),
	})
	require(t, server.Addr, done, "→", "override", "set", "login", "-key", "ann", "-mode", "shadow", "-for", "1h")
	block := func(keys string) string {
		text, _ := ctlWith(t, env("redis://"+server.Addr), keys, "block", "login", "-keys", "-", "-for", "1h")
		return text
	}
	for keys, harmless := range map[string]bool{"ann\n": true, "ann\nbob\n": false, "bob\nann\n": false} {
		if text := block(keys); !strings.Contains(text, "→") || strings.Contains(text, "in mode shadow") != harmless {
			t.Errorf("%q: got %s", keys, text)
		}
	}
	require(t, server.Addr, done, "→ blocked", "block", "p.T.M", "ann", "-for", "1h")
	const note = "\nlogin is in mode shadow for ann: such calls would be refused, and pass\n"
	require(t, server.Addr, done, note, "block", "login", "ann", "-for", "1h")
	text, status := ctl(t, server.Addr, "blocked")
	if status != done || !strings.Contains(text, "p.T.M") || !strings.HasSuffix(text, note) || strings.Count(text, "in mode shadow") != 1 {
		t.Errorf("status %d: %s", status, text)
	}
}
