package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// The error for bad input is one line that says what was found.
func TestBadInput(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{
		"login 1m": `{"name":"login","key":"{user}","limit":5,"per":60000000000}`,
		"all 1m":   `{"name":"all","limit":5,"per":60000000000}`,
		"mars x":   `{"name":"mars","key":"{user}","limit":5,"cron":"@daily","tz":"Mars/Olympus"}`, // a zone that this machine does not know
	})
	for _, test := range []struct {
		status int
		want   string
		args   string // separated by spaces; _ means an empty argument
	}{
		{misuse, "the command is missing", ""},
		{misuse, `unknown command "forget"`, "forget"},
		{misuse, `unknown command "inspekt"; did you mean inspect?`, "inspekt login"},
		{misuse, "the first argument is no command", "redis://u:s3cret@h rules"},
		{misuse, `unknown command "overide"; did you mean override?; see ratelimitctl -h`, "overide set login"},
		{misuse, "not defined: -limt; see ratelimitctl help override set", "override set login -limt 5"},
		{misuse, "override: expected set, clear, list", "override"},
		{misuse, "override: expected set, clear, list", "override drop"},
		{misuse, `help: found "x" after a whole command`, "help rules x"},
		{misuse, "not defined: -x", "-x rules"},
		{misuse, "not defined: -x", "rules -x"},
		{misuse, "rules: found 1 argument; expected 0", "rules login"},
		{misuse, "inspect: found 0 arguments; expected 1 to 2", "inspect"},
		{misuse, "inspect: found 3 arguments", "inspect a b c"},
		{misuse, "inspect: found 3 arguments", "inspect -- a -b -c"},
		{failed, `has used a rule "-a"`, "inspect -- -a -b"},
		{misuse, `-shown: found "a{b"; expected a whole key`, "inspect -shown login a{b"},
		{misuse, `-shown: found "a%#0"; expected a whole key`, "block login a%#0 -shown -for 1h"},
		{misuse, "counts by {user}: name a key", "inspect login"},
		{misuse, "counts by {user}: name a key", "inspect login _"},
		{failed, `has used a rule "log\x1bin"`, "inspect log\x1bin ann"},
		{misuse, "-for: expected how long, up to 30d, as in -for 1h", "block login ann"},
		{misuse, "expected a duration above zero", "block login ann -for -1h"},
		{misuse, "invalid value", "block login ann -for soon"},
		{misuse, "-for: expected how long, up to 30d", "block login ann -for 31d"},
		{misuse, "counts by {user}: name a key", "block login _ -for 1h"},
		{misuse, "counts by {user}: name a key", "unblock login"},
		{misuse, "found a key and -keys", "block login ann -keys - -for 1h"},
		{misuse, "-keys: found no key", "block login -keys - -for 1h"},
		{misuse, "-keys: /none: no such file", "block login -keys /none -for 1h"},
		{misuse, "not defined: -forever", "block login ann -forever"},
		{misuse, "invalid value", "override set login -limit many"},
		{misuse, "invalid value", "override set login -limit 1.5"},
		{misuse, "expected enforce, shadow or trigger", "override set login -mode off"},
		{misuse, "the change is missing", "override set login"},
		{misuse, "the end is missing: write -for 1h, for example, or -forever", "override set login -limit 1"},
		{misuse, "found an end and forever", "override set login -limit 1 -for 1h -forever"},
		{misuse, "found limit and factor", "override set login -limit 1 -factor 2 -for 1h"},
		{misuse, "expected a number from 0.001 to 1000", "override set login -factor x -for 1h"},
		{failed, "expected 0.001 to 1000", "override set login -factor 1001 -for 1h"},
		{failed, "expected 0 or more, or mode=shadow", "override set login -limit -1 -for 1h"},
		{misuse, "expected 1 or more", "override set login -burst 0 -for 1h"},
		{failed, "; ratelimitctl sets it anyway with -force", "override set login -burst 5 -for 1h"},
		{failed, "name: found", "override set a:b -limit 1 -for 1h -force"},
		{failed, `has used a rule "logn" within a day; did you mean login?`, "override set logn -limit 1 -for 1h"},
		{failed, "or use -force", "block logn ann -for 1h"},
		{misuse, "for all unnamed rules of a method: write p.T.M", "override set p.T.M#2 -limit 1 -for 1h"},
		{misuse, "-reason: found 201 bytes", "block login ann -for 1h -reason " + strings.Repeat("x", 201)},
		{misuse, "-sort: expected decisions", "top -sort x"},
		{misuse, "expected how many changes, at least 1", "changes -n -1"},
		{misuse, "give: -n: expected how many permits", "give login ann"},
		{misuse, "pause: -for: expected how long", "pause login ann"},
		{misuse, "counts by {user}: name a key", "pause login -for 1m"},
		{failed, "or use -force", "resume logn ann"},
		{misuse, "settings import: /none: no such file", "settings import /none"},
		{misuse, "need a URL that begins with rediss", "-tls-ca /etc/ssl/certs/ca-certificates.crt rules"},
		{misuse, "-tls-ca: /none: no such file", "-tls-ca /none rules"},
		{misuse, "-tls-cert /none and -tls-key /none: no such file", "-tls-cert /none -tls-key /none rules"},
		{failed, `no program uses prefix "ratelimt"; on this server there is ratelimit: see -prefix`, "-prefix ratelimt rules"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "inspect mars ann"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "reset mars ann"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "acl"},
		{misuse, "-every: found 1ms; expected 1s or more", "top -every 1ms"},
		{misuse, "not defined: -once", "rules -once"},
		{misuse, "-rules: /none: no such file", "-rules /none rules"},
		{misuse, "expected one such as redis://", "-redis http://127.0.0.1 rules"},
		{misuse, "expected one such as redis://", "-redis redis://u:s3cret@h:port rules"},
		{misuse, "needs an argument", "-redis"},
		{failed, "cannot be reached", "-redis redis://127.0.0.1:1 rules"},
	} {
		args := strings.Fields(test.args)
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], "_")
		}
		require(t, server.Addr, test.status, test.want, args...)
		if text, _ := ctl(t, server.Addr, args...); strings.Contains(text, "s3cret") || !strings.HasPrefix(text, "ratelimitctl: ") {
			t.Errorf("%s: %s", test.args, text)
		}
	}
}

// Each command says in one line that the server cannot be reached.
func TestLostServer(t *testing.T) {
	for _, c := range commands {
		if c.local || c.name == "acl" || c.name == "doctor" { // these say so in their output
			continue
		}
		args := example(&c)
		require(t, "127.0.0.1:1", failed, "cannot be reached", args...)
	}
}

// example returns a command line with a command.
func example(c *command) []string {
	args := strings.Fields(c.name)
	switch c.name {
	case "inspect", "reset", "unblock", "resume":
		return append(args, "login", "ann")
	case "give":
		return append(args, "login", "ann", "-n", "1")
	case "block", "pause":
		return append(args, "login", "ann", "-for", "1h")
	case "override set":
		return append(args, "login", "-limit", "1", "-for", "1h")
	case "override clear":
		return append(args, "login")
	case "completion":
		return append(args, "bash")
	case "serve":
		return append(args, "-listen", "127.0.0.1:0")
	}
	return args
}

// Each command fails if its output cannot be written.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	useBlocks(t, server, f)
	f.waitUntilSeen(t) // it answers settings recover
	lost := writerFunc(func([]byte) (int, error) { return 0, errors.New("output is lost") })
	for _, c := range commands {
		for _, flags := range [][]string{nil, {"-json"}} {
			args := append(flags, example(&c)...)
			var errs bytes.Buffer
			if s := run(t.Context(), args, env("redis://"+server.Addr), strings.NewReader(""), lost, &errs); s != failed || !strings.Contains(errs.String(), "output is lost") {
				t.Errorf("%q: status %d, %s", args, s, errs.String())
			}
		}
	}
}

// No text from the store reaches a terminal unescaped.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	const evil = "\x1b[2J\x1b]0;owned\a\u202e\u009b31m\U000e0001\x00\r\xff"
	quoted := `\u001b[2J\u001b]0;owned\u0007\u202e\u009b31m\udb40\udc01\u0000\r`
	const seen, settings = "ratelimit.seen:{ratelimit}:", "ratelimit.fleet:{ratelimit}:"
	ctx := t.Context()
	for _, set := range [][]any{
		{"hset", seen + "rules", evil, evil, "1", `{"name":"login","key":"` + quoted + `","limit":5,"per":60000000000}`},
		{"hset", seen + "rules", "2", `{"name":"` + quoted + `","limit":5,"per":60000000000}`},
		// A zone that nobody knows.
		{"hset", seen + "rules", "3", `{"name":"mars","limit":5,"cron":"@daily","tz":"Mars/Olympus"}`},
		{"hset", seen + "sets", evil, evil, "s", `{"at":"2999-01-01T00:00:00Z","program":"` + quoted + `","rules":["1","2","3"]}`},
		{"set", settings + "epoch", evil}, {"set", settings + "version", "99"},
		{"hset", settings + "settings", evil, evil, "override:login", `{"limit":5,"by":"` + quoted + `"}`, "override:x" + evil, `{"limit":5}`,
			"block:login:{" + evil + "}", `{"until":"2999-01-01T00:00:00Z","by":"` + quoted + `"}`},
		{"zadd", settings + "versions", 1, evil, 2, "override:login", 3, "override:x" + evil, 4, "block:login:{" + evil + "}"},
		{"hset", seen + "processes", evil, evil, "p", `{"at":"2999-01-01T00:00:00Z","host":"` + quoted + `"}`},
		{"lpush", settings + "changes", `{"by":"` + quoted + `","what":"` + quoted + `","rule":"` + quoted + `","key":"` + quoted + `","reason":"` + quoted + `"}`, evil},
		{"hset", "x" + evil + ".seen:{x" + evil + "}:rules", "a", "b"},
		{"set", seen + "report:" + evil, evil},
		{"set", seen + "report:p", `{"seconds":1,"rules":[{"name":"` + quoted + `","tag":"` + quoted + `","calls":1,"refused":1,"shadow":1,"subjects":[{"subject":"` +
			quoted + `","calls":1,"refused":1,"shadow":1}]}]}`},
		{"set", "ratelimit:" + evil, evil},
		{"set", "ratelimit:login}:block:" + evil, evil},
		{"set", "ratelimit:login:{" + evil + "}:block:1h", evil},
		{"set", "ratelimit:login:{ann}:1m", evil},
	} {
		if err := client.Do(ctx, set...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"rules", "inspect login ann", "reset login ann", "inspect login ann", "block login ann -for 1h", "unblock login ann",
		"override list", "blocked", "blocked login", "override clear login", "override set login -limit 3 -for 1h", "top -once", "doctor", "acl",
		"inspect nobody", "inspect -all ann", "pause login ann -for 1h", "resume login ann", "give login ann -n 1", "changes", "processes", "settings export", "settings import", "-prefix other rules",
	} {
		for _, flags := range [][]string{nil, {"-json"}} {
			var out, errs bytes.Buffer
			_ = run(ctx, append(flags, strings.Fields(command)...), env("redis://"+server.Addr), strings.NewReader(""), &out, &errs)
			requirePrintable(t, strings.ReplaceAll(out.String()+errs.String(), "\t", ""))
			if out.Len()+errs.Len() == 0 {
				t.Errorf("%s prints nothing", command)
			}
		}
	}
}
