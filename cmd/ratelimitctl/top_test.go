package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var update = flag.Bool("update", false, "rewrite the frames in testdata")

func TestFrames(t *testing.T) {
	many := fleet.Report{Seconds: 5}
	for i := range 20 {
		r := fleet.RuleCounts{Name: fmt.Sprintf("rule%02d", i), Tag: "1m", Counts: fleet.Counts{Calls: 100 - int64(i)}}
		for j := range 5 {
			r.Subjects = append(r.Subjects, fleet.Subject{Name: fmt.Sprintf("k%d", j), Counts: fleet.Counts{Calls: 20 - int64(i)/4}})
		}
		many.Rules = append(many.Rules, r)
	}
	login := func(calls, refused int64, subjects ...fleet.Subject) fleet.RuleCounts {
		return fleet.RuleCounts{Name: "login", Tag: "1m", Counts: fleet.Counts{Calls: calls, Refused: refused}, Subjects: subjects}
	}
	subject := func(name string, calls, refused, shadow int64) fleet.Subject {
		return fleet.Subject{Name: name, Counts: fleet.Counts{Calls: calls, Refused: refused, Shadow: shadow}}
	}
	at := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	process := fleet.Process{Host: "h", PID: 7, Program: "shop", At: at, Stats: true}
	for name, reports := range map[string][]fleet.Report{
		"nobody": nil,
		"one":    {{Seconds: 5, Rules: []fleet.RuleCounts{login(10, 0, subject("ann", 10, 0, 0))}}},
		"two": {
			{Seconds: 5, Rules: []fleet.RuleCounts{
				login(100, 40, subject("ann", 60, 40, 0), subject("bob", 40, 0, 0)),
				{Name: "p.T.M", Tag: "1h:{ip}", Counts: fleet.Counts{Calls: 50, Shadow: 25}, Subjects: []fleet.Subject{subject("192.0.2.1", 50, 0, 25)}},
			}},
			{Seconds: 2.5, Rules: []fleet.RuleCounts{login(30, 5, subject("ann", 10, 5, 0), subject("%all", 20, 0, 0))}},
		},
		"many": {many},
		"hostile": {{Seconds: 1, Rules: []fleet.RuleCounts{
			{Name: "\x1b[2J\nlogin", Tag: "\u202e1m\t", Counts: fleet.Counts{Calls: 1, Refused: 1}, Subjects: []fleet.Subject{subject("\x1b]0;x\a\u009b2J\xff", 1, 1, 1)}},
		}}},
	} {
		var processes []fleet.Process
		for range reports {
			processes = append(processes, process)
		}
		names := map[traffic.Named]traffic.Known{{Rule: "p.T.M", Window: "1h:{ip}"}: {Named: traffic.Named{Rule: "p.T.M#2", Window: "leaky:1h"}}}
		got := newFrame(frameOf{"shop", processes, traffic.Sum(reports, names), "", "decisions", at}).text(0)
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || got != string(want) {
			t.Errorf("%s: %v; run \"go test -update\" if this is right:\n%s", name, err, got)
		}
		requirePrintable(t, got)
	}
}

// requirePrintable checks that a text has no characters that a terminal interprets.
func requirePrintable(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if shown(line) != line && strings.Trim(line, "\t") == line {
			t.Errorf("%q is not escaped", line)
		}
	}
}

// top shows the decisions of several processes, and nothing after they have stopped.
func TestTop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	login := ratelimit.Rule{Name: "login", Limit: 3, Per: time.Hour}
	for range 2 {
		f := newFleet(t, server.Addr, redisstore.WithStats())
		f.allow(5, login, "ann")
		if _, err := f.Reset(t.Context(), ratelimit.Request{Rule: login, Key: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	reader := redisstore.New(newFleet(t, server.Addr).client).Fleet("ratelimit")
	redistest.Eventually(t, "both processes publish", func() bool {
		processes, _ := reader.Processes(t.Context()) // without any there are no reports
		all, err := reader.Reports(t.Context(), processes)
		return err == nil && len(all) == 2
	})
	var f frame
	text, status := ctl(t, server.Addr, "-json", "top", "-once")
	if err := json.Unmarshal([]byte(text), &f); err != nil || status != done {
		t.Fatalf("status %d, error %v: %s", status, err, text)
	}
	if len(f.Rules) != 1 || f.Rules[0].Rule != "login" || len(f.Refused) != 1 || f.Refused[0].Key != "ann" {
		t.Fatalf("got %+v", f)
	}
	// 10 calls in about 5 seconds. Each process refused 2 of its 5, so the share is exact although their periods differ.
	if r := f.Rules[0]; r.Calls < 0.5 || r.Calls > 4 || r.Refused/r.Calls < 0.39 || r.Refused/r.Calls > 0.41 {
		t.Errorf("got %+v", r)
	}
	require(t, server.Addr, done, "2 processes", "top", "-once")
}

// top shows the same names as errors for rules without names, even under an override.
func TestTopNamesRules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{
		"p.T.M 1h:{ip}": `{"name":"p.T.M#2","unnamed":true,"key":"{ip}","limit":5,"per":3600000000000}`,
	})
	if err := f.Overrides().Set(t.Context(), "p.T.M", ratelimit.Override{Per: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	publish(t, f.client, "p", `{"seconds":5,"rules":[{"name":"p.T.M","tag":"2h:{ip}","calls":5}]}`)
	require(t, server.Addr, done, "p.T.M#2  per 2h  1.0", "top", "-once")
}

// The JSON of top has the window and the algorithm that rules -json has in force.
func TestTopInWordsOfDirectives(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f, texts, counts := newFleet(t, server.Addr), map[string]string{}, []fleet.RuleCounts{}
	five, per := int64(5), time.Minute
	for _, rule := range []ratelimit.Rule{
		{Algorithm: ratelimit.TokenBucket, Warmup: time.Second}, {Algorithm: ratelimit.SlidingCounter}, {Distinct: "{to}"},
		{Cron: "0 0 0 * * *", TZ: "Asia/Tokyo"}, {Algorithm: ratelimit.Concurrency}, {Amounts: true},
	} {
		rule.Name, rule.Limit = fmt.Sprint("r", len(texts)), five
		if rule.Cron == "" {
			rule.Per = time.Hour
		}
		texts[rule.Name] = ruleText(rule)
		change := ratelimit.Override{Limit: &five}
		if rule.Cron == "" {
			change.Per = per
		}
		if err := f.Overrides().Set(t.Context(), rule.Name, change); err != nil {
			t.Fatal(err)
		}
		inForce, err := f.RuleFor(ratelimit.Request{Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, fleet.RuleCounts{Name: rule.Name, Tag: inForce.Window(), Counts: fleet.Counts{Calls: 5}})
	}
	f.known(texts)
	report, _ := json.Marshal(fleet.Report{Seconds: 5, Rules: counts})
	publish(t, f.client, "p", string(report))
	var rules []shownRule
	var top struct{ Rules []map[string]any }
	for command, to := range map[string]any{"rules": &rules, "top -once -sort rule": &top} {
		text, status := ctl(t, server.Addr, strings.Fields("-json "+command)...)
		if err := json.Unmarshal([]byte(text), to); status != done || err != nil {
			t.Fatalf("%s: status %d, error %v: %s", command, status, err, text)
		}
	}
	if len(rules) != len(texts) || len(top.Rules) != len(texts) {
		t.Fatalf("rules has %d, and top %d; want %d", len(rules), len(top.Rules), len(texts))
	}
	for i, rule := range rules {
		want := map[string]any{"rule": rule.Rule, "window": rule.InForce.Window, "algorithm": rule.InForce.Algorithm}
		got := maps.Clone(top.Rules[i])
		maps.DeleteFunc(got, func(name string, value any) bool { _, isRate := value.(float64); return isRate })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("top has %v, want %v", got, want)
		}
	}
}

// publish writes the report of a process, as processes with statistics do.
func publish(t *testing.T, client *redis.Client, process, report string) {
	t.Helper()
	word, err := json.Marshal(fleet.Process{Host: "h", At: time.Now().UTC(), Stats: true})
	if err != nil {
		t.Fatal(err)
	}
	client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:processes", process, word, "gone", `{"at":"2020-01-01T00:00:00Z"}`)
	client.Set(t.Context(), "ratelimit.seen:{ratelimit}:report:"+process, report, time.Minute)
}

// top prints frames until q is pressed. Without a terminal, they have no control characters.
func TestTopGoesOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	in, keyboard := io.Pipe()
	defer in.Close()
	var out, errs bytes.Buffer
	frames := writerFunc(func(b []byte) (int, error) {
		if out.Write(b); strings.Count(out.String(), "prefix ratelimit") == 2 {
			go func() { _, _ = keyboard.Write([]byte("xq")) }()
		}
		return len(b), nil
	})
	if status := run(t.Context(), []string{"top", "-every", "1s"}, env("redis://"+server.Addr), in, frames, &errs); status != done || errs.Len() > 0 {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "\n\n") {
		t.Errorf("got %q", text)
	}
}

// While the server is down, top shows its last frame as stale, and goes on when the server is back.
func TestTopRetries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	f.known(map[string]string{"login": ruleText(login)})
	publish(t, f.client, "p", `{"seconds":5,"rules":[{"name":"login","tag":"1h","calls":5}]}`)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	fresh, stale := 0, 0
	frames := writerFunc(func(b []byte) (int, error) {
		switch isStale := strings.Contains(string(b), "STALE"); {
		case isStale && (stale > 0 || strings.Contains(string(b), "cannot be reached") && strings.Contains(string(b), "login")):
			stale++
			server.Restart()
		case isStale:
			t.Errorf("got %s", b)
		case stale > 0:
			end()
		default:
			fresh++
			server.Stop()
		}
		return len(b), nil
	})
	if status := run(ctx, []string{"top", "-every", "1s"}, env("redis://"+server.Addr), strings.NewReader(""), frames, frames); status != done || stale == 0 || fresh == 0 {
		t.Errorf("status %d, %d fresh and %d stale frames", status, fresh, stale)
	}
}

// A frame says which processes may be dead, and leaves out the dead. It shows only what the filter matches, in the order of the sorting.
func TestTopFiltersAndSorts(t *testing.T) {
	now := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	report := fleet.Report{Seconds: 1, Rules: []fleet.RuleCounts{
		{Name: "login", Tag: "1h", Counts: fleet.Counts{Calls: 9, Refused: 1}, Subjects: []fleet.Subject{{Name: "ann", Counts: fleet.Counts{Calls: 9, Failed: 2}}}},
		{Name: "export", Tag: "1h", Counts: fleet.Counts{Calls: 5, Refused: 4, Failed: 3}, Subjects: []fleet.Subject{{Name: "bob", Counts: fleet.Counts{Calls: 5}}}},
	}}
	of := frameOf{prefix: "p", sums: traffic.Sum([]fleet.Report{report}, nil), sort: "decisions", now: now, processes: []fleet.Process{
		{Host: "old", At: now.Add(-8 * time.Second)}, {Host: "new", At: now.Add(-6 * time.Second)},
	}}
	if f := newFrame(of); len(f.Silent) != 1 || !strings.Contains(f.text(0), "perhaps dead or cut off:  0 on old, silent for 8s; its rates are from before") {
		t.Errorf("got %s", f.text(0))
	}
	for sort, first := range map[string]string{"decisions": "login", "refused": "export", "failed": "export", "shadow": "export", "rule": "export"} {
		of.sort = sort
		if f := newFrame(of); len(f.Rules) != 2 || f.Rules[0].Rule != first || len(f.Failed) != 1 {
			t.Errorf("by %s: %+v", sort, f)
		}
	}
	for filter, want := range map[string]string{"log": "login ann", "ann": " ann", "zz": " "} {
		of.filter = filter
		f := newFrame(of)
		got := " "
		for _, r := range f.Rules {
			got = r.Rule + got
		}
		for _, s := range f.Hottest {
			got += s.Key
		}
		if got != want {
			t.Errorf("filter %q: got %q", filter, got)
		}
	}
	of.filter, of.processes = "zz", []fleet.Process{{Host: "new", At: now, Stats: true}}
	f := newFrame(of)
	if want := "no decisions in the last five seconds of a rule or key with \"zz\"\n"; !strings.HasSuffix(f.text(0), want) {
		t.Errorf("got %s; want %s", f.text(0), want)
	}
	if text, err := json.Marshal(f); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("got %s, %v", text, err)
	}
}

// Lines are cut to the width of the window, in which some characters take two columns. Numbers stay.
func TestColumnsFitTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines [][]string
		for range rapid.IntRange(0, 5).Draw(t, "lines") {
			lines = append(lines, rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab漢字é\u0301🙂"))), 1, 4).Draw(t, "cells"))
		}
		most := rapid.IntRange(1, 80).Draw(t, "width")
		for line := range strings.Lines(columns(lines, most)) {
			if n := width(strings.TrimSuffix(line, "\n")); n > most {
				t.Fatalf("%q takes %d columns of %d", line, n, most)
			}
		}
	})
	text := columns([][]string{{"KEY", "NUMBER"}, {strings.Repeat("漢", 64), "1.0"}, {"ann", "22.5"}}, 40)
	for line := range strings.Lines(text) {
		if width(line) > 41 || !strings.HasSuffix(line, "NUMBER\n") && !strings.HasSuffix(line, "1.0\n") && !strings.HasSuffix(line, "22.5\n") {
			t.Errorf("got\n%s", text)
		}
	}
	if rows, columns := terminalSize("24 80"); rows != 24 || columns != 80 {
		t.Errorf("got %d rows and %d columns", rows, columns)
	}
	if got := cutRows("a\nb\nc\n", 3); got != "a\nb\n" {
		t.Errorf("got %q", got)
	}
}

// A terminal is cleared before each frame. This test uses another device in place of a terminal.
func TestTerminal(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !isTerminal(device) || isTerminal(file) || isTerminal(new(bytes.Buffer)) {
		t.Error("it does not tell devices from files")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
