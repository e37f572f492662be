package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// Settings by pattern are set, shown, named in what they refuse, exported, imported and ended as others are.
func TestMatch(t *testing.T) {
	t.Parallel()
	server, other := redistest.Start(t), redistest.Start(t)
	mail := ratelimit.Rule{Name: "mail", Limit: 5, Per: time.Hour}
	for _, s := range []*redistest.Server{server, other} {
		newFleet(t, s.Addr).known(map[string]string{"login": ruleText(login), "mail": ruleText(mail)})
	}
	for _, step := range []struct{ command, want string }{
		{"block login -match 203.0.113.0/24 -for 1h -reason stuffing", "login 203.0.113.0/24: not blocked → blocked until"},
		{"block l* -match 203.0.0.0/16 -for 2h", "l* 203.0.0.0/16: not blocked → blocked until"},
		{"pause * -match acme-* -for 1h", "* acme-*: not paused → paused until"},
		{"override set * -match 10.0.0.0/8 -limit 7 -for 1h", "* 10.0.0.0/8: no override → limit=7 until"},
		{"override set * -factor 2 -for 1h", "*: no override → factor=2 until"},
		{"override set * -match 10.0.0.0/8 -per 2h", "limit=7 until"},
		{"blocked login", "203.0.113.0/24"}, {"blocked login", "l*     203.0.0.0/16"}, {"paused mail", "acme-*"}, {"override list mail", "10.0.0.0/8  limit=7 per=2h"},
		{"inspect login 203.0.113.7", "203.0.113.7 is blocked until"}, {"inspect login 203.0.113.7", ", as 203.0.0.0/16 of l*, set by"},
		{"inspect login 10.0.0.1", "override of 10.0.0.0/8 of *: limit=7 per=2h"}, {"inspect login 10.0.0.1", "override of *: factor=2"},
		{"inspect login 10.0.0.1", "login  7 per 2h"}, {"inspect mail acme-ann", "acme-ann is paused until"},
		{"rules", "10 per hour; 4 settings by pattern"}, {"changes login", "203.0.113.0/24"},
	} {
		require(t, server.Addr, done, step.want, strings.Fields(step.command)...)
	}
	require(t, server.Addr, done, "limit=9 for ever", "override", "set", "l*", "-match", "acme-*", "-limit", "9", "-forever")
	if text, _ := ctl(t, server.Addr, "doctor"); strings.Contains(text, "setting-unusable") ||
		!strings.Contains(text, "ratelimitctl override clear 'l*' -shown -match 'acme-*'") {
		t.Errorf("doctor says %s", text)
	}
	require(t, server.Addr, done, "→ no override", "override", "clear", "l*", "-shown", "-match", "acme-*")
	exported, status := ctl(t, server.Addr, "settings", "export")
	if status != done || strings.Count(exported, `"match": true`) != 4 {
		t.Errorf("status %d, exported %s", status, exported)
	}
	if text, status := ctlWith(t, env("redis://"+other.Addr), exported, "settings", "import"); status != done || !strings.HasPrefix(text, "5 of 5 imported") {
		t.Errorf("status %d, %s", status, text)
	}
	if again, _ := ctl(t, other.Addr, "settings", "export"); again != exported {
		t.Errorf("exported again is\n%s\nwant\n%s", again, exported)
	}
	for _, command := range []string{
		"unblock login -match 203.0.113.0/24", "unblock l* -match 203.0.0.0/16", "resume * -match acme-*", "override clear * -match 10.0.0.0/8", "override clear *",
	} {
		require(t, server.Addr, done, "→ no", strings.Fields(command)...)
	}
	require(t, server.Addr, done, `"settings": []`, "settings", "export")
}

// A broken pattern or glob is refused with what to write.
func TestBrokenMatch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	for command, want := range map[string]string{
		"block login -match 203.0.113.7/24 -for 1h":              "write 203.0.113.0/24",
		"unblock login -match a*b":                               "expected a network",
		"override set login -match *x -limit 1 -for 1h":          "expected a network",
		"pause s*p -match 10.0.0.0/8 -for 1h":                    "s*p",
		"block nosuch* -match 10.0.0.0/8 -for 1h":                `"nosuch*"`,
		"block login ann -match ann* -for 1h":                    "found a key and -match",
		"block * -for 1h":                                        "a key",
		"reset l* ann":                                           "only settings can be for many keys or rules",
		"override set login -key ann -match a* -limit 1 -for 1h": "found a key and -match",
	} {
		text, status := ctl(t, server.Addr, strings.Fields(command)...)
		if status == done || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %s; want %s", command, status, text, want)
		}
	}
}

// A key that a tool knows only by its hash may be in a network: the tool says that it cannot tell.
func TestMatchOfHashedKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	secret := strings.Repeat("s", 32)
	f := &program{ratelimit.New(redisstore.New(newFleet(t, server.Addr).client), ratelimit.WithSubjectHash(bytes.Repeat([]byte("s"), 32))), nil, t}
	byIP := ratelimit.Rule{Name: "byip", Limit: 5, Per: time.Hour}
	f.allow(1, byIP, "203.0.113.7")
	plain := newFleet(t, server.Addr)
	plain.known(map[string]string{"byip": ruleText(byIP)})
	err := errors.Join(plain.Block(t.Context(), time.Hour, ratelimit.Request{Rule: byIP, Match: "old-*"}),
		plain.Overrides().Set(t.Context(), "byip", ratelimit.Override{Match: "old-*", Factor: 2}))
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string) string {
		return map[string]string{"RATELIMIT_REDIS": "redis://" + server.Addr, "RATELIMIT_SECRET": secret}[name]
	}
	for _, step := range []struct {
		command, want string
		status        int
	}{
		{"block byip -match 203.0.113.0/24 -for 1h", "→ blocked until", done},
		{"inspect byip 203.0.113.7", "is blocked until", done},
		{"inspect byip -shown " + hashOf(t, secret, "203.0.113.7"), "patterns not applied", done},
		{"block byip -match acme-* -for 1h", "the keys of this rule are hashed", failed},
		{"unblock byip -match old-*", "→ not blocked", done}, {"override clear byip -match old-*", "→ no override", done},
	} {
		if text, status := ctlWith(t, with, "", strings.Fields(step.command)...); status != step.status || !strings.Contains(text, step.want) {
			t.Errorf("%s: status %d, %s; want %s", step.command, status, text, step.want)
		}
	}
	redistest.Eventually(t, "the program has said which secret it has", func() bool {
		text, _ := ctl(t, server.Addr, "block", "byip", "198.51.100.7", "-for", "1h")
		return strings.Contains(text, "the programs hash keys with another secret")
	})
	for command, want := range map[string]string{ // a network is not hashed, so it needs no secret
		"block byip -match 198.51.100.0/24 -for 1h": "→ blocked until", "unblock byip -match 203.0.113.0/24": "→ not blocked",
		"override set byip -match 198.51.100.0/24 -limit 2 -for 1h": "→ limit=2",
	} {
		require(t, server.Addr, done, want, strings.Fields(command)...)
	}
}

// hashOf returns the hash of a key.
func hashOf(t *testing.T, secret, text string) string {
	t.Helper()
	states, err := ratelimit.New(redisstore.New(newFleet(t, redistest.Start(t).Addr).client), ratelimit.WithSubjectHash([]byte(secret))).StateKeys(
		ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Minute}, Key: text})
	if err != nil {
		t.Fatal(err)
	}
	_, subject, _ := strings.Cut(states[0], "{")
	subject, _, _ = strings.Cut(subject, "}")
	return subject
}
