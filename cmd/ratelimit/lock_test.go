package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	limits "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

const lockSource = `package x

import ("context"; "time")

//ratelimit:rule key="{clientIP(ctx)}" limit=100 per=1h
type X interface {
	//ratelimit:rule key="{phone}" limit=1 per=1m
	//ratelimit:rule name=day key="{phone}" limit=10 cron=@daily tz=Asia/Tokyo
	Send(ctx context.Context, phone string) error

	//ratelimit:rule limit="len(text)" per=1s scope=instance
	Talk(ctx context.Context, text string) error

	//ratelimit:rule key="{text}" limit=5 per=1s algorithm=token-bucket burst=20 hash=false
	Shout(ctx context.Context, text string) error

	//ratelimit:rule name=yearly key="{team}" limit=50 every=1y anchor=since
	Ask(ctx context.Context, team string, since, paid time.Time) error
}
`

const lockText = lockHeader + `{"rule":"day","key":"{phone}","tag":"cron:@daily:Asia/Tokyo","limit":"10"}
{"rule":"x.X","key":"{clientIP(ctx)}","tag":"1h:{clientIP(ctx)}","limit":"100"}
{"rule":"x.X.Send","key":"{phone}","tag":"1m:{phone}","limit":"1"}
{"rule":"x.X.Shout","key":"{text}","tag":"bucket:1s:{text}","hash":"false","limit":"5","burst":"20"}
{"rule":"x.X.Talk","tag":"1s","scope":"instance","limit":"len(text)"}
{"rule":"yearly","key":"{team}","tag":"every:1y","limit":"50","anchor":"since"}
`

// TestLock changes rules after ratelimit.lock was written.
func TestLock(t *testing.T) {
	dir := module(t, "x.go", lockSource, "sub/y.go", "package sub\n")
	expect(t, 0, filepath.Join(dir, "sub"), "-lock") // the module's, wherever one is in it
	if got := read(t, dir, lockName); got != lockText {
		t.Fatalf("ratelimit.lock is\n%s", got)
	}
	for name, test := range map[string]struct {
		changes []string // pairs of old and new text
		want    []string // without the first line
	}{
		"nothing":        {},
		"a comment":      {changes: []string{"package x", "// Package x is here.\npackage x"}},
		"a default":      {changes: []string{"limit=5 per=1s algorithm=token-bucket burst=20", "limit=20 per=1s algorithm=token-bucket burst=20"}, want: []string{"x.go:14:1: the limit of x.X.Shout is 20 instead of 5 with a burst of 20; usage so far still counts"}},
		"a message":      {changes: []string{"per=1m", `per=1m message="Not now."`}},
		"the order":      {changes: []string{"\t//ratelimit:rule key=\"{phone}\" limit=1 per=1m\n", "", "tz=Asia/Tokyo", "tz=Asia/Tokyo\n\t//ratelimit:rule key=\"{phone}\" limit=1 per=1m"}},
		"a limit":        {[]string{"limit=10 ", "limit=20 "}, []string{"x.go:8:1: the limit of day is 20 instead of 10; usage so far still counts"}},
		"a burst":        {[]string{"burst=20", "burst=30"}, []string{"x.go:14:1: the limit of x.X.Shout is 5 with a burst of 30 instead of 5 with a burst of 20; usage so far still counts"}},
		"a limit's expr": {[]string{`"len(text)"`, `"len(text) + 1"`}, []string{"x.go:11:1: the limit of x.X.Talk is len(text) + 1 instead of len(text); usage so far still counts"}},
		"a mode":         {[]string{"limit=10 ", "limit=10 mode=shadow "}, []string{"x.go:8:1: the limit of day is 10, mode=shadow instead of 10; usage so far still counts"}},
		"a condition":    {[]string{"limit=10 ", `limit=10 when="len(phone) > 3" cost=2 `}, []string{"x.go:8:1: the limit of day is 10, cost=2, when=len(phone) > 3 instead of 10; usage so far still counts"}},
		"an anchor":      {[]string{"anchor=since", "anchor=paid"}, []string{"x.go:17:1: the limit of yearly is 50, anchor=paid instead of 50, anchor=since; usage so far still counts"}},
		"a period":       {[]string{"every=1y", "every=2y"}, []string{"x.go:17:1: the counts of yearly start anew: they are *:yearly:{{team}}:every:2y instead of *:yearly:{{team}}:every:1y"}},
		"all":            {[]string{"name=day key=\"{phone}\" limit=10 ", "name=day key=\"0{phone}\" limit=20 mode=shadow "}, []string{`x.go:8:1: the key of day is "0{phone}" instead of "{phone}"; its counts continue where both give the same text`, "x.go:8:1: the limit of day is 20, mode=shadow instead of 10"}},
		"no cost":        {changes: []string{"limit=10 ", "limit=10 cost=1 mode=enforce "}},
		"a parameter":    {[]string{"{phone}", "{number}", "phone string", "number string"}, []string{`x.go:8:1: the key of day is "{number}" instead of "{phone}"; its counts continue where both give the same text`, "x.go:7:1: the counts of x.X.Send start anew: they are *:x.X.Send:{{number}}:1m:{number} instead of *:x.X.Send:{{phone}}:1m:{phone}"}},
		"a window":       {[]string{"per=1h", "per=2h"}, []string{"x.go:5:1: the counts of x.X start anew: they are *:x.X:{{clientIP(ctx)}}:2h:{clientIP(ctx)} instead of *:x.X:{{clientIP(ctx)}}:1h:{clientIP(ctx)}"}},
		"an algorithm":   {[]string{"per=1h", "per=1h algorithm=fixed-window"}, []string{"x.go:5:1: the counts of x.X start anew: they are *:x.X:{{clientIP(ctx)}}:fixed:1h:{clientIP(ctx)} instead of *:x.X:{{clientIP(ctx)}}:1h:{clientIP(ctx)}"}},
		"a scope":        {[]string{" scope=instance", ""}, []string{"x.go:11:1: the counts of x.X.Talk start anew: they are *:x.X.Talk:{%all}:1s instead of *:x.X.Talk:{%all}:1s of each process"}},
		"hashing":        {[]string{" hash=false", ""}, []string{"x.go:14:1: the counts of x.X.Shout start anew: they are *:x.X.Shout:{{text}}:bucket:1s:{text} instead of *:x.X.Shout:{{text}}:bucket:1s:{text} without hashing"}},
		"a rule's name":  {[]string{"name=day", "name=daily"}, []string{"x.go:8:1: daily is a new rule: its counts, *:daily:{{phone}}:cron:@daily:Asia/Tokyo, start from nothing", "ratelimit.lock:2:1: day is gone: its counts, *:day:{{phone}}:cron:@daily:Asia/Tokyo, expire"}},
		"a method":       {[]string{"Talk(", "Speak("}, []string{"x.go:11:1: x.X.Speak is a new rule: its counts, *:x.X.Speak:{%all}:1s of each process, start from nothing", "ratelimit.lock:6:1: x.X.Talk is gone: its counts, *:x.X.Talk:{%all}:1s of each process, expire"}},
		"one rule more":  {[]string{"per=1m", "per=1m\n\t//ratelimit:rule limit=7 per=1m"}, []string{"x.go:8:1: x.X.Send is a new rule: its counts, *:x.X.Send:{%all}:1m, start from nothing"}},
		"one rule less":  {[]string{"\t//ratelimit:rule key=\"{phone}\" limit=1 per=1m\n", ""}, []string{"ratelimit.lock:4:1: x.X.Send is gone: its counts, *:x.X.Send:{{phone}}:1m:{phone}, expire"}},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, dir, "x.go", strings.NewReplacer(test.changes...).Replace(lockSource))
			expect(t, 0, dir, "./...")
			if test.want == nil {
				if stdout, stderr := expect(t, 0, dir, "-check", "./..."); stdout != "" || strings.Contains(stderr, lockName) {
					t.Errorf("printed %q and %q", stdout, stderr)
				}
				return
			}
			want := "ratelimit.lock: the rules have changed; to accept the changes, run: go tool ratelimit -lock\n"
			_, stderr := expect(t, 1, dir, "-check", "./...")
			if _, got, _ := strings.Cut(stderr, want); got != strings.Join(test.want, "\n")+"\n" {
				t.Errorf("printed\n%sexpected\n%s", stderr, want+strings.Join(test.want, "\n"))
			}
			expect(t, 0, dir, "-check", ".") // is not about all packages of the module
		})
	}
}

// TestLockDefault writes the default burst explicitly, in a rule and in an earlier file.
func TestLockDefault(t *testing.T) {
	const short, long = "algorithm=token-bucket", "algorithm=token-bucket burst=1"
	with := func(arguments string) string { return strings.Replace(source, "limit=1", "limit=1 "+arguments, 1) }
	dir := module(t, "x.go", with(short))
	expect(t, 0, dir, "-lock")
	lock := read(t, dir, lockName)
	for _, arguments := range []string{short, long} {
		write(t, dir, "x.go", with(arguments))
		expect(t, 0, dir)
		write(t, dir, lockName, lock)
		expect(t, 0, dir, "-check", "./...")
		write(t, dir, lockName, strings.Replace(lock, `"limit":"1"`, `"limit":"1","burst":"1"`, 1))
		expect(t, 0, dir, "-check", "./...")
		if expect(t, 0, dir, "-lock"); read(t, dir, lockName) != lock {
			t.Errorf("%s gives\n%s", arguments, read(t, dir, lockName))
		}
	}
}

// TestLockBelow expects that -lock writes the file of the module also from a folder in it, and prints paths relative to that folder.
func TestLockBelow(t *testing.T) {
	dir := module(t, "x.go", source)
	write(t, dir, "below/y.go", "package below\n")
	write(t, dir, "shared.go", "package x\n\ntype Y interface {\n\t//ratelimit:rule limit=5 per=1m algorithm=fixed-window\n\tDo() error\n}\n")
	_, stderr := expect(t, 0, filepath.Join(dir, "below"), "-lock")
	if !strings.HasPrefix(stderr, "../shared.go:4:") {
		t.Errorf("printed %s", stderr)
	}
	if text := read(t, dir, lockName); !strings.Contains(text, `"limit":"5"`) {
		t.Error(text)
	}
}

// TestLockWorkspace expects that the rules of each module are compared with the ratelimit.lock of that module.
func TestLockWorkspace(t *testing.T) {
	const mod = "module example.com/%s\n\ngo 1.26\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.work":  "go 1.26\n\nuse (\n\t./a\n\t./a/in\n\t./b\n)\n",
		"a/go.mod": fmt.Sprintf(mod, "a"), "a/x.go": source,
		"a/in/go.mod": fmt.Sprintf(mod, "a/in"), "a/in/x.go": source,
		"b/go.mod": fmt.Sprintf(mod, "b"), "b/x.go": source,
	} {
		write(t, dir, name, text)
	}
	all := []string{"./a/...", "./a/in/...", "./b/..."}
	for _, module := range []string{"a", "a/in", "b"} {
		expect(t, 0, filepath.Join(dir, module), "-lock")
	}
	expect(t, 0, dir, all...)
	expect(t, 0, dir, append([]string{"-check"}, all...)...)
	changed := strings.Replace(source, "limit=1", "limit=2", 1)
	write(t, dir, "a/x.go", changed)
	write(t, dir, "b/x.go", changed)
	expect(t, 0, dir, all...)
	_, stderr := expect(t, 1, dir, append([]string{"-check"}, all...)...)
	var want string
	for _, module := range []string{"a", "b"} {
		want += fmt.Sprintf("%s/ratelimit.lock: the rules have changed; to accept the changes, run: go tool ratelimit -lock, in %[1]s\n"+
			"%[1]s/x.go:4:1: the limit of x is 2 instead of 1; usage so far still counts\n", module)
	}
	if !strings.HasSuffix(stderr, want) {
		t.Errorf("printed\n%sexpected at its end\n%s", stderr, want)
	}
	expect(t, 0, dir, "-check", "./a/in/...")
	expect(t, 1, dir, "-check", filepath.Join(dir, "b")+"/...")
}

// TestLockAndStale expects both messages if a file is stale and the rules differ.
func TestLockAndStale(t *testing.T) {
	dir := module(t, "x.go", source)
	expect(t, 0, dir)
	if _, stderr := expect(t, 0, dir, "-check", "./..."); stderr != "" {
		t.Errorf("without ratelimit.lock: %q", stderr)
	}
	expect(t, 0, dir, "-lock")
	expect(t, 0, dir, "-check", "./...")
	write(t, dir, "x.go", strings.Replace(source, "limit=1", "limit=2", 1))
	_, stderr := expect(t, 1, dir, "-check", "./...")
	if !strings.Contains(stderr, "x_ratelimit.go: stale") || !strings.Contains(stderr, "the limit of x is 2 instead of 1") {
		t.Errorf("printed %q", stderr)
	}
	_, stderr = expect(t, 1, dir, "-check", "-json", "./...")
	if n := strings.Count(stderr, `"code":"lock"`); n != 2 {
		t.Errorf("%d messages of the lock: %s", n, stderr)
	}
	expect(t, 0, dir, "-lock")
	expect(t, 0, dir)
	expect(t, 0, dir, "-check", "./...")
	write(t, dir, lockName, read(t, dir, lockName)+"<<<<<<< HEAD\n")
	if _, stderr = expect(t, 1, dir, "-check", "./..."); !strings.Contains(stderr, "\nratelimit.lock:3:1: this line is not as ratelimit -lock writes it\n") {
		t.Errorf("printed %q", stderr)
	}
}

func TestLockUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"-lock", "-check"}, {"-lock", "-list"}, {"-lock", "./..."}} {
		expect(t, 2, dir, args...)
	}
	if _, err := os.Stat("/go.mod"); err == nil {
		t.Fatal("this test needs a temporary folder outside of a module")
	}
	if _, stderr := expect(t, 1, dir, "-lock"); stderr != "there is no go.mod in this directory or above it\n" {
		t.Errorf("printed %q", stderr)
	}
}

// TestLockLayout compares the layouts of ratelimit.lock with the keys that a limiter writes for the same rules.
func TestLockLayout(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	rules := wrap.NewRules("x.X.Send",
		limits.Rule{Key: "{phone}", Limit: 1, Per: time.Minute},
		limits.Rule{Name: "day", Key: "{phone}", Limit: 10, Cron: "@daily", TZ: "Asia/Tokyo"},
		limits.Rule{Name: "x.X", Key: "{clientIP(ctx)}", Limit: 100, Per: time.Hour},
		limits.Rule{Name: "yearly", Key: "{team}", Limit: 50, Every: "1y"})
	limiter := limits.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	if err := wrap.TakeCharges(t.Context(), rules.On(limiter), rules, wrap.Charge{Key: "5550100", Cost: 1}, wrap.Charge{Key: "5550100", Cost: 1},
		wrap.Charge{Key: "192.0.2.1", Cost: 1}, wrap.Charge{Key: "red", Cost: 1, Anchor: time.Now()}); err != nil {
		t.Fatal(err)
	}
	keys, err := client.Keys(t.Context(), "ratelimit:*:{*").Result()
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := parseLock(lockName, []byte(lockText))
	if err != nil {
		t.Fatal(err)
	}
	var layouts []string
	for _, l := range append(lines[:3:3], lines[5]) {
		layouts = append(layouts, strings.NewReplacer("*", "ratelimit", "{{phone}}", "{5550100}", "{{clientIP(ctx)}}", "{192.0.2.1}", "{{team}}", "{red}").Replace(l.layout()))
	}
	slices.Sort(keys)
	slices.Sort(layouts)
	if !slices.Equal(keys, layouts) {
		t.Errorf("the keys are %q, the layouts %q", keys, layouts)
	}
}

// TestCheckTellsAll expects a message about a stale file even if another file and ratelimit.lock cannot be read.
func TestCheckTellsAll(t *testing.T) {
	dir := module(t, "x.go", source, "y/y.go", source, "y/y_ratelimit.go", "package x\n", lockName+"/file", "")
	path := filepath.Join("y", "y_ratelimit.go")
	_, stderr := expect(t, 1, dir, "-check", "./...")
	want := "x_ratelimit.go: missing; run: go tool ratelimit ./...\n" + path + ": not generated by ratelimit; rename it\n" + lockName + ": "
	if !strings.HasPrefix(stderr, want) {
		t.Errorf("printed\n%sexpected\n%s", stderr, want)
	}
	_, stderr = expect(t, 1, dir, "-check", "-json", "./...")
	for _, file := range []string{"x_ratelimit.go", path, lockName} {
		if start := fmt.Sprintf(`{"file":%q,"severity":"error",`, file); !strings.Contains(stderr, start) {
			t.Errorf("printed\n%sexpected %s", stderr, start)
		}
	}
}
