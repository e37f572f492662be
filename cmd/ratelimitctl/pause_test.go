package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// pause holds a key, by a setting or by the marker of a rule with pause=. inspect says so, and resume ends it.
func TestPause(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	send := ratelimit.Rule{Name: "send", Key: "{to}", Limit: 5, Per: time.Hour, Pausable: true}
	f.known(map[string]string{"login": ruleText(login), "send": ruleText(send)})
	for _, rule := range []ratelimit.Rule{login, send} {
		require(t, server.Addr, done, rule.Name+" ann: not paused → paused until 20", "pause", rule.Name, "ann", "-for", "1h", "-reason", "quiet")
		require(t, server.Addr, done, rule.Name+" ann: paused until 20", "pause", rule.Name, "ann", "-for", "2h")
		require(t, server.Addr, done, "ann is paused until 20", "inspect", rule.Name, "ann")
		require(t, server.Addr, done, " UTC, set by "+username()+" at 20", "inspect", rule.Name, "ann")
		if err := f.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, err := f.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "ann"}); err != nil || d.Allowed || d.Source != ratelimit.SourcePause {
			t.Errorf("%s: got %+v, %v", rule.Name, d, err)
		}
		require(t, server.Addr, done, "→ not paused\n", "resume", rule.Name, "ann")
		require(t, server.Addr, done, "ann: not paused → not paused\n", "resume", rule.Name, "ann")
		if text, _ := ctl(t, server.Addr, "inspect", rule.Name, "ann"); strings.Contains(text, "paused") {
			t.Errorf("got %s", text)
		}
	}
	require(t, server.Addr, done, "new ann: not paused → paused until 20", "pause", "new", "ann", "-for", "1h", "-force")
	require(t, server.Addr, done, "new a%7Bb: not paused → paused until 20", "pause", "new", "a{b", "-for", "1h", "-force")
	require(t, server.Addr, done, "→ paused", "pause", "login", "bob", "-for", "1h")
	require(t, server.Addr, done, "1 key paused", "rules")
	text, _ := ctl(t, server.Addr, "changes")
	if strings.Count(text, "  pause   ") != 7 || !strings.Contains(text, "  a%7Bb  ") || strings.Count(text, "  resume  ") != 4 || !strings.Contains(text, "quiet") {
		t.Errorf("got %s", text)
	}
}

// give returns permits to a key, and takes some. It is one change for all keys.
func TestGive(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login), "shared": `{"name":"shared","limit":5,"per":3600000000000}`})
	f.allow(5, login, "ann")
	require(t, server.Addr, done, "login ann: 0 → 2 permits left\n", "give", "login", "ann", "-n", "2", "-reason", "sorry")
	require(t, server.Addr, done, "login ann: 2 → 5 permits left\n", "give", "login", "ann", "-n", "99")
	require(t, server.Addr, done, "shared: 5 → 1 permit left\n", "give", "shared", "-n", "-4")
	text, status := ctlWith(t, env("redis://"+server.Addr), "ann\nbob\n", "give", "login", "-keys", "-", "-n", "-1")
	if status != done || text != "login ann: 5 → 4 permits left\nlogin bob: 5 → 4 permits left\n" {
		t.Errorf("status %d, %s", status, text)
	}
	text, _ = ctlWith(t, env("redis://"+server.Addr), strings.Join(strings.Split("abcdefghijklmnopqrstuv", ""), "\n"), "give", "login", "-keys", "-", "-n", "1")
	if !strings.HasSuffix(text, "login t: 5 → 5 permits left\nand 2 keys more\n") {
		t.Errorf("got %s", text)
	}
	text, _ = ctl(t, server.Addr, "changes")
	if strings.Count(text, "  give  ") != 5 || !strings.Contains(text, "2 keys") || !strings.Contains(text, "ann      2 permits given   sorry") ||
		!strings.Contains(text, "4 permits taken") || !strings.Contains(text, "1 permit taken") {
		t.Errorf("got %s", text)
	}
}

// What is done to a count, and cannot be noted in changes, did not fail.
func TestCountsThatAreNotNoted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	f.allow(5, login, "ann")
	server.Do("CONFIG SET maxmemory 1")
	text, status := ctl(t, server.Addr, "reset", "login", "ann")
	if status != failed || !strings.Contains(text, "1 count forgotten") || !strings.Contains(text, "ratelimitctl: it is done, but not noted in changes: ") {
		t.Errorf("status %d, %s", status, text)
	}
}

// A far side's pause of everybody is listed, and doctor says since when it lasts.
func TestPauseOfAFarSide(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	since := time.Now().UTC().Truncate(time.Second)
	note, _ := json.Marshal(fleet.PauseNote{Since: since, Until: since.Add(time.Hour), By: "shop 7 on web1", FarSide: true})
	f.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:pauses", "login:{"+key.Subject("")+"}", note)
	require(t, server.Addr, done, "the far side, told to shop 7 on web1", "paused", "login")
	require(t, server.Addr, done, ", since "+operate.LocalTime(since), "doctor")
}
