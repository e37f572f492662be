package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var bucket = ratelimit.Rule{Name: "bucket", Key: "{user}", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}

// After any sequence of commands, an override is what their flags say, one after the other.
func TestOverridesMerge(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"bucket": ruleText(bucket)})
	rapid.Check(t, func(r *rapid.T) {
		ctl(t, server.Addr, "override", "clear", "bucket")
		var want fleet.Values
		ends := false
		for range rapid.IntRange(1, 5).Draw(r, "commands") {
			args := []string{"-json", "override", "set", "bucket"}
			if rapid.Bool().Draw(r, "replaces") {
				args, want, ends = append(args, "-replace"), fleet.Values{}, false
			}
			n := rapid.Int64Range(6, 59).Draw(r, "n")
			switch rapid.SampledFrom([]string{"limit", "factor", "per", "burst", "mode"}).Draw(r, "flag") {
			case "limit":
				args, want.Limit, want.Factor = append(args, "-limit", fmt.Sprint(n)), &n, 0
			case "factor":
				args, want.Limit, want.Factor = append(args, "-factor", fmt.Sprint(n)), nil, float64(n)
			case "per":
				args, want.Per = append(args, "-per", fmt.Sprint(n, "m")), fmt.Sprint(n, "m")
			case "burst":
				args, want.Burst = append(args, "-burst", fmt.Sprint(n)), n
			case "mode":
				args, want.Mode = append(args, "-mode", "shadow"), "shadow"
			}
			switch end := rapid.SampledFrom([]string{"-for", "-forever", ""}).Draw(r, "end"); {
			case end == "-for":
				args, ends = append(args, end, "1h"), true
			case end == "-forever" || !ends:
				args, ends = append(args, "-forever"), false
			}
			text, status := ctl(t, server.Addr, args...)
			if status != done {
				r.Fatalf("%q: %s", args, text)
			}
		}
		text, _ := ctl(t, server.Addr, "-json", "override", "list")
		var got []fleet.Values
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 1 {
			r.Fatalf("got %s", text)
		}
		if operate.Arguments(&got[0]) != operate.Arguments(&want) || got[0].Until.IsZero() == ends {
			r.Errorf("want %s, it ends: %t; got %s", operate.Arguments(&want), ends, text)
		}
	})
}

// A merge keeps the end that is there. It needs one where there is none.
func TestAnEndIsKept(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	set := func(args ...string) string {
		text, _ := ctl(t, server.Addr, append([]string{"override", "set", "login"}, args...)...)
		return text
	}
	first := set("-limit", "100", "-for", "2h", "-reason", "a sale")
	_, end, _ := strings.Cut(strings.SplitN(first, "\n", 2)[0], " until ")
	if got, want := set("-limit", "120"), fmt.Sprintf("login: limit=100 until %s → limit=120 until %s\n", end, end); end == "" || !strings.HasPrefix(got, want) {
		t.Errorf("got %swant %s", got, want)
	}
	if got := set("-per", "2m"); !strings.Contains(got, "→ limit=120 per=2m until "+end) {
		t.Errorf("got %s", got)
	}
	if got := set("-per", "2m", "-replace"); !strings.Contains(got, "the end is missing") {
		t.Errorf("got %s", got)
	}
	if got := set("-limit", "3", "-forever"); !strings.Contains(got, "→ limit=3 per=2m for ever") {
		t.Errorf("got %s", got)
	}
	if got := set("-limit", "4"); !strings.Contains(got, "the end is missing") {
		t.Errorf("got %s", got)
	}
}

// What cannot apply to a rule is refused, also together with the override of all keys. With -force it is set.
func TestUnfitOverridesAreRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	daily := ratelimit.Rule{Name: "daily", Limit: 5, Cron: "@daily"}
	paid := ratelimit.Rule{Name: "paid", Key: "{c.ID}", Limit: 5, Every: "1mo"}
	shared := ratelimit.Rule{Name: "shared", Limit: 5, Per: time.Hour}
	newFleet(t, server.Addr).known(map[string]string{"b": ruleText(bucket), "l": ruleText(login), "d": ruleText(daily), "p": ruleText(paid), "s": ruleText(shared)})
	for _, test := range []struct{ want, args string }{
		{`rule "login": burst: `, "login -burst 5"},
		{`rule "login": burst: `, "login -key ann -burst 5"},
		{`rule "daily": per: does not apply: the rule has cron=@daily; `, "daily -per 1m"},
		{`rule "paid": per: does not apply: the rule has every=1mo; `, "paid -per 1h"},
		{`has used a rule "serach"`, "serach -limit 9"},
	} {
		args := append([]string{"override", "set"}, strings.Fields(test.args)...)
		require(t, server.Addr, failed, test.want, append(args, "-for", "1h")...)
		require(t, server.Addr, done, "→ ", append(args, "-for", "1h", "-force")...)
	}
	require(t, server.Addr, done, "shared ann: no override → limit=9 until", "override", "set", "shared", "-key", "ann", "-limit", "9", "-for", "1h")
	require(t, server.Addr, done, "→ burst=9 until", "override", "set", "bucket", "-key", "ann", "-burst", "9", "-for", "1h")
}

// The keys of one command are set together, and are one change.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	in := "ann\r\nbob\n\nann\na{b\n"
	for i := range 30 {
		in += fmt.Sprintf("user%d\n", i)
	}
	keys := func(args ...string) string {
		text, status := ctlWith(t, env("redis://"+server.Addr), in, append(args, "-keys", "-", "-reason", "list of today")...)
		if status != done {
			t.Fatalf("%q: %s", args, text)
		}
		return text
	}
	if text := keys("override", "set", "login", "-limit", "9", "-for", "1h"); !strings.Contains(text, "login a%7Bb: no override → limit=9 until") || !strings.Contains(text, "and 13 keys more") {
		t.Errorf("got %s", text)
	}
	keys("block", "login", "-for", "1h")
	f.allow(2, login, "user3")
	if text := keys("reset", "login"); text != "1 count forgotten\n" {
		t.Errorf("got %s", text)
	}
	if text, _ := ctl(t, server.Addr, "blocked"); strings.Count(text, "list of today") != 33 {
		t.Errorf("got %s", text)
	}
	keys("unblock", "login")
	keys("override", "clear", "login")
	require(t, server.Addr, done, "no override is in force", "override", "list")
	text, _ := ctl(t, server.Addr, "changes")
	for _, what := range []string{"set", "block", "reset", "unblock", "clear"} {
		if strings.Count(text, "  "+what+"  ") != 1 {
			t.Errorf("there is not one %s:\n%s", what, text)
		}
	}
	if strings.Count(text, "33 keys") != 5 || strings.Count(text, "list of today") != 5 {
		t.Errorf("got\n%s", text)
	}
}

// With -wait, a command ends when all processes follow. If one does not, the command says which.
func TestWait(t *testing.T) {
	server := redistest.Start(t)
	a, b := newFleet(t, server.Addr), newFleet(t, server.Addr)
	a.allow(1, login, "ann")
	b.allow(1, login, "ann")
	redistest.Eventually(t, "both processes are known", func() bool {
		text, _ := ctl(t, server.Addr, "processes")
		return strings.Count(text, "\n") == 3
	})
	require(t, server.Addr, done, "\nin force everywhere within 2s\n", "override", "set", "login", "-limit", "8", "-for", "1h")
	for limit := range int64(3) {
		require(t, server.Addr, done, "\nin force in 2 processes\n", "override", "set", "login", "-limit", fmt.Sprint(limit), "-for", "1h", "-wait")
		for _, p := range []*program{a, b} {
			if rule, err := p.RuleFor(ratelimit.Request{Rule: login, Key: "ann"}); err != nil || rule.Limit != limit {
				t.Errorf("limit %d, error %v; want %d", rule.Limit, err, limit)
			}
		}
	}
	hung, _ := json.Marshal(fleet.Process{Host: "near", PID: 8, Program: "shop", At: time.Now().Add(-8 * time.Second).UTC()})
	a.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", "hung", hung)
	require(t, server.Addr, done, "perhaps not everywhere in force soon: nothing is heard of shop 8 on near\n", "override", "set", "login", "-limit", "8", "-for", "1h")
	a.client.HDel(t.Context(), "ratelimit.seen:{ratelimit}:processes", "hung")
	defer func(before time.Duration) { waitAtMost = before }(waitAtMost)
	waitAtMost = 200 * time.Millisecond
	deaf, _ := json.Marshal(fleet.Process{Host: "far", PID: 7, Program: "shop", At: time.Now().Add(10 * time.Second).UTC(), Setting: "NOPERM"})
	a.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", "deaf", deaf)
	require(t, server.Addr, failed, " of 3 processes do not follow yet, such as ", "override", "set", "login", "-limit", "8", "-for", "1h", "-wait")
	require(t, server.Addr, done, "not everywhere in force soon: a process cannot read settings: shop 7 on far: NOPERM", "override", "clear", "login")
}

// Settings that no rule has can be ended as doctor advises, and others cannot be made without -force.
func TestEndSettingsOfNoRule(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	for _, of := range []struct{ begin, end string }{
		{"override set gone -limit 4 -for 1h", "override clear gone"},
		{"override set gone -limit 4 -for 1h -key ann", "override clear gone -shown -key ann"},
		{"override set gone* -limit 4 -for 1h", "override clear gone*"},
		{"block gone ann -for 1h", "unblock gone ann -shown"},
		{"pause gone -for 1h -match a*", "resume gone -shown -match a*"},
	} {
		begin, end := strings.Fields(of.begin), strings.Fields(of.end)
		require(t, server.Addr, failed, "has used a rule", begin...)
		require(t, server.Addr, failed, "has used a rule", end...)
		require(t, server.Addr, done, "gone", append(begin, "-force")...)
		require(t, server.Addr, done, "gone", end...)
	}
}

// Under a limit of 0 nobody is told when to come back.
func TestInspectNever(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	ctl(t, server.Addr, "override", "set", "login", "-limit", "0", "-for", "1h")
	require(t, server.Addr, done, " never\n", "inspect", "login", "ann")
}
