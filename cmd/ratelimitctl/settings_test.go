package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// What is exported can be imported elsewhere, and is then the same. Of two, the newer holds. The answer counts what holds afterwards.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	from, to := redistest.Start(t), redistest.Start(t)
	shared := ratelimit.Rule{Name: "shared", Limit: 5, Per: time.Hour}
	for _, server := range []*redistest.Server{from, to} {
		newFleet(t, server.Addr).known(map[string]string{"l": ruleText(login), "s": ruleText(shared), "b": ruleText(bucket)})
	}
	require(t, to.Addr, done, "limit=1", "override", "set", "login", "-limit", "1", "-forever", "-reason", "older")
	require(t, to.Addr, done, "limit=1", "override", "set", "bucket", "-limit", "1", "-forever", "-reason", "only here")
	for _, command := range []string{
		"override set login -limit 9 -for 1h -reason sale", "override set login -key a{b -factor 0.5 -mode shadow -forever",
		"block login eve -for 1d -reason abuse", "block login bob -for 1d", "block shared -for 1h", "override set login -key gone -limit 1 -for 1h", "override clear login -key gone",
	} {
		require(t, from.Addr, done, "→", strings.Fields(command)...)
	}
	exported, status := ctl(t, from.Addr, "settings", "export")
	if status != done || strings.Count(exported, `"rule"`) != 5 {
		t.Fatalf("exported is %s", exported)
	}
	require(t, to.Addr, done, "→", "block", "login", "bob", "-for", "2d", "-reason", "newer")
	ended := strings.TrimSuffix(exported, "\n\t]\n}\n") + `,{"kind":"pause","rule":"login","subject":"ann","until":"2020-01-01T00:00:00Z","at":"2019-01-01T00:00:00Z"}]}`
	text, status := ctlWith(t, env("redis://"+to.Addr), ended, "settings", "import", "-reason", "moved")
	if status != done || !strings.HasPrefix(text, "4 of 6 imported, 1 ended, 1 not newer than the store's; the store had 3 settings and has 6\n") {
		t.Errorf("status %d, %s", status, text)
	}
	all, _ := ctl(t, to.Addr, "settings", "export")
	if strings.Count(all, `"rule"`) != 6 || !strings.Contains(all, "newer") || !strings.Contains(all, "only here") || strings.Contains(all, "older") {
		t.Errorf("got %s", all)
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	require(t, to.Addr, done, "4 of 5 imported, 0 ended, 1 not newer than the store's; the store had 6 settings and has 6\n", "settings", "import", file)
	require(t, to.Addr, done, `"imported": 4,
	"ended": 0,
	"notNewer": 1,
	"before": 6,
	"after": 6
}`, "-json", "settings", "import", file)
	if again, _ := ctl(t, to.Addr, "settings", "export"); again != all {
		t.Errorf("a second import changes\n%s\nto\n%s", all, again)
	}
	require(t, to.Addr, done, "  3 rules  6 keys  ", "changes")
}

func TestBadImports(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for text, want := range map[string]string{
		"{":                               "expected the output of settings export",
		`{} {}`:                           "found text after the value; expected the output of settings export",
		`{"settings":[{"kinds":"x"}]}`:    `unknown field "kinds"`,
		`{"settings":[{"kind":"x"}]}`:     `setting 1: kind: found "x"; expected override, block or pause`,
		`{"settings":[{"kind":"block"}]}`: "setting 1: a subject and until are needed",
		`{"settings":[{"kind":"override","rule":"a","key":"b","limit":1}]}`:                               `unknown field "key"`,
		`{"settings":[{"kind":"block","rule":"a","subject":"b"}]}`:                                        "a subject and until are needed",
		`{"settings":[{"kind":"block","rule":"a:b","subject":"b","until":"2999-01-01T00:00:00Z"}]}`:       "name: found",
		`{"settings":[{"kind":"override","rule":"a"}]}`:                                                   "found no change",
		`{"settings":[{"kind":"override","rule":"a","subject":"a{b","limit":1}]}`:                         `subject: found "a{b"`,
		`{"settings":[{"kind":"override","rule":"a","limit":-2}]}`:                                        "expected 0 to",
		`{"settings":[{"kind":"override","rule":"a","limit":1,"by":"` + strings.Repeat("x", 201) + `"}]}`: "by or reason: found 201 bytes",
	} {
		got, status := ctlWith(t, env("redis://"+server.Addr), text, "settings", "import")
		if status != misuse || !strings.Contains(got, want) {
			t.Errorf("%s: status %d, %s", text, status, got)
		}
	}
}

// After the store has lost its settings, the tool says so until an import, and changes nothing by itself.
func TestLostSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.allow(1, login, "ann")
	redistest.Eventually(t, "the process is known", func() bool { text, _ := ctl(t, server.Addr, "processes"); return strings.Count(text, "\n") == 2 })
	require(t, server.Addr, done, "in force in 1 process\n", "override", "set", "login", "-limit", "9", "-for", "1h", "-wait")
	backup, _ := ctl(t, server.Addr, "settings", "export")
	const said = "the store lost its settings; 1 process still applies its own"
	for _, in := range []string{"", backup} {
		server.Restart()
		redistest.Eventually(t, said, func() bool { text, _ := ctl(t, server.Addr, "override", "list"); return strings.Contains(text, said) })
		require(t, server.Addr, done, said, "rules")
		require(t, server.Addr, done, "1 that the store lost", "processes")
		examined(t, server.Addr).require(t, operate.SettingsLost, operate.Warning, "run ratelimitctl settings recover")
		if text, status := ctl(t, server.Addr, "settings", "export"); status != failed || !strings.Contains(text, "the export lacks the settings that the store has lost") {
			t.Errorf("status %d, %s", status, text)
		}
		const kept = said + " (1): run ratelimitctl settings recover\n"
		require(t, server.Addr, done, "none in the store\n"+kept, "override", "list")
		require(t, server.Addr, done, "none in the store\n"+kept, "blocked")
		require(t, server.Addr, done, kept, "inspect", "login", "ann")
		require(t, server.Addr, done, "login eve: none in the store → not blocked\n", "unblock", "login", "eve", "-force")
		require(t, server.Addr, done, kept, "unblock", "login", "eve")
		for _, command := range []string{"blocked", "paused", "override list", "inspect login ann", "block login bob -for 1h", "unblock login bob"} { // these are about settings
			requireLoss(t, server.Addr, kept, true, strings.Fields(command)...)
			requireLoss(t, server.Addr, kept, false, append([]string{"-json"}, strings.Fields(command)...)...)
		}
		for _, command := range []string{"rules", "changes", "processes", "top -once", "reset login zoe", "override clear nosuch"} {
			requireLoss(t, server.Addr, kept, false, strings.Fields(command)...)
		}
		text, status := ctlWith(t, env("redis://"+server.Addr), in, "settings", "import", "-wait")
		if status != done || !strings.Contains(text, "in force in 1 process\n1 process kept settings that the store lost; those that the import lacks are not") {
			t.Errorf("status %d, %s", status, text)
		}
		redistest.Eventually(t, "not "+said, func() bool { text, _ := ctl(t, server.Addr, "processes"); return !strings.Contains(text, said) })
		rule, err := f.RuleFor(ratelimit.Request{Rule: login, Key: "ann"})
		if want := map[bool]int64{true: 5, false: 9}[in == ""]; err != nil || rule.Limit != want {
			t.Errorf("limit %d, error %v; want %d", rule.Limit, err, want)
		}
		require(t, server.Addr, done, "limit=9", "override", "set", "login", "-limit", "9", "-for", "1h", "-wait")
	}
	require(t, server.Addr, done, "\"before\": 1,\n\t\"after\": 1,\n\t\"settings\": []", "-json", "settings", "recover") // it has nothing to do
}

// requireLoss runs the tool, which says once what was lost: on the standard output or beside it.
func requireLoss(t *testing.T, addr, kept string, isOutput bool, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	run(t.Context(), args, env("redis://"+addr), strings.NewReader(""), &stdout, &stderr)
	out, beside := strings.Count(stdout.String(), kept), strings.Count(stderr.String(), kept)
	if out+beside != 1 || isOutput != (out == 1) {
		t.Errorf("%q says it %d times, and %d times beside:\n%s%s", args, out, beside, stdout.String(), stderr.String())
	}
}

// A wrong prefix is an error that names the others. So is an empty server.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	for _, c := range commands {
		if !c.local && !c.anyPrefix {
			require(t, server.Addr, failed, "no prefix on this server", example(&c)...)
		}
	}
	declare(t, f.client, "shop", ruleText(login))
	declare(t, f.client, "a%7Bb", ruleText(login))
	for _, c := range commands {
		if !c.local && !c.anyPrefix {
			require(t, server.Addr, failed, `no program uses prefix "ratelimit"; on this server there is a%7Bb, shop: see -prefix`, example(&c)...)
		}
	}
	text, status := ctlWith(t, env("redis://"+server.Addr, "RATELIMIT_PREFIX", "a{b"), "", "rules")
	if status != done || !strings.Contains(text, "login") {
		t.Errorf("status %d, %s", status, text)
	}
	server.Do("ACL SETUSER default -scan")
	require(t, server.Addr, failed, "the others on this server are unknown", "rules")
}

// During a rollout, rules shows what each part of the processes declares, beside what is in force.
func TestRulesDuringARollout(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var programs []*program
	for _, limit := range []int64{10, 100, 100} {
		f := newFleet(t, server.Addr)
		programs = append(programs, f)
		f.allow(1, ratelimit.Rule{Name: "search", Key: "{user}", Limit: limit, Per: time.Minute}, "ann")
	}
	redistest.Eventually(t, "all three limits are declared", func() bool {
		text, _ := ctl(t, server.Addr, "rules")
		return strings.Contains(text, "search  10 (1 process), 100 (2) per minute  -  ")
	})
	require(t, server.Addr, done, "", "override", "set", "search", "-limit", "50", "-mode", "shadow", "-for", "1h")
	require(t, server.Addr, done, "", "override", "set", "search", "-key", "bob", "-limit", "500", "-for", "1h")
	require(t, server.Addr, done, "", "block", "search", "eve", "-for", "1h")
	require(t, server.Addr, done, "100 (2) per minute  50 per minute; 1 key overridden; 1 key blocked  {user}  shadow", "rules")
	text, _ := ctl(t, server.Addr, "-json", "rules")
	var shown []shownRule
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown) != 1 || shown[0].Limits[10] != 1 || *shown[0].InForce.Limit != 50 || shown[0].Window != "1m" {
		t.Errorf("got %s", text)
	}
	_ = programs
}

// processes shows what is wrong with each of them.
func TestProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	require(t, server.Addr, done, nobodyReports, "processes")
	for id, p := range map[string]fleet.Process{
		"a": {Host: "web1", PID: 7, Program: "shop", Build: "v1", Ahead: 2 * time.Hour},
		"b": {Host: "web2", PID: 8, Program: "shop", Build: "v2", Store: "use redis.NewClusterClient: MOVED", Ahead: -time.Minute},
		"A": {Host: "web1", PID: 7, Program: "shop", Build: "v1"}, // another client of process a
		"c": {Host: "web3", PID: 9, Program: "desk", Build: "v1", Setting: "NOPERM", Lost: 3},
	} {
		p.At = time.Now().UTC()
		word, _ := json.Marshal(p)
		f.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", id, word)
	}
	text, status := ctl(t, server.Addr, "processes")
	for _, want := range []string{"2h0m0s ahead", "1m0s behind", "MOVED", "NOPERM", "3 that the store lost", "current"} {
		if status != done || !strings.Contains(text, want) {
			t.Errorf("status %d, no %q:\n%s", status, want, text)
		}
	}
	found := examined(t, server.Addr)
	found.require(t, operate.BuildsDiffer, operate.Note, "several builds run: v1 (1 process), v2 (1 process)")
	found.require(t, operate.ClockOff, operate.Warning, "its clock is 2h ahead of the store's")
	found.require(t, operate.StoreDown, operate.Bad, "use redis.NewClusterClient: MOVED. To do: see its log")
	found.require(t, operate.SettingsStale, operate.Warning, "NOPERM: it goes on with the settings")
	found.require(t, operate.SettingsLost, operate.Warning, "run ratelimitctl settings recover")
	if found.status != failed {
		t.Errorf("status %d", found.status)
	}
}

// What only processes keep that do not answer stays in force: recover writes nothing if nobody else knows a lost setting.
func TestRecoverOfWhatNobodyTells(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.allow(1, login, "ann")
	f.waitUntilSeen(t)
	old, err := json.Marshal(fleet.Process{Host: "web-1", PID: 7, Program: "shop", At: time.Now(), Lost: 2})
	if err != nil {
		t.Fatal(err)
	}
	f.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", "old", old)
	got, status := ctl(t, server.Addr, "settings", "recover")
	if want := "no answer came from shop 7 on web-1\n"; status != failed || !strings.Contains(got, want) || !strings.Contains(got, "nothing is restored: ") {
		t.Errorf("status %d, got %q, want %q", status, got, want)
	}
	if epoch := server.Do("EXISTS ratelimit.fleet:{ratelimit}:epoch"); epoch != "0" {
		t.Errorf("settings were written")
	}
}

// What recover restores is perhaps not in force in a process that did not answer.
func TestRecoverBesidesAHungProcess(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("wait=", wait), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			f := newFleet(t, server.Addr)
			f.allow(1, login, "ann")
			f.waitUntilSeen(t)
			require(t, server.Addr, done, "in force in 1 process\n", "block", "login", "eve", "-for", "1h", "-wait")
			server.Do("FLUSHALL")
			redistest.Eventually(t, "the loss is known", func() bool {
				text, _ := ctl(t, server.Addr, "processes")
				return strings.Contains(text, "1 that the store lost")
			})
			hung, err := json.Marshal(fleet.Process{Host: "web-1", PID: 7, Program: "shop", At: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			f.client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", "hung", hung)
			args := []string{"settings", "recover"}
			if wait {
				args = append(args, "-wait")
			}
			const want = "no answer came from shop 7 on web-1\n1 of 1 restored; the store has 1 setting\nperhaps not everywhere in force soon: nothing is heard of shop 7 on web-1\n"
			if got, status := ctl(t, server.Addr, args...); status != done || !strings.HasSuffix(got, want) {
				t.Errorf("status %d, got %q, want %q", status, got, want)
			}
		})
	}
}
