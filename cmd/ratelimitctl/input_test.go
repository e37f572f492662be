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
		{misuse, "found no command", ""},
		{misuse, `unknown command "forget"`, "forget"},
		{misuse, `unknown command "override"`, "override"},
		{misuse, `unknown command "override drop"`, "override drop"},
		{misuse, "not defined: -x", "-x rules"},
		{misuse, "not defined: -x", "rules -x"},
		{misuse, "rules: found 1 argument; expected 0", "rules login"},
		{misuse, "inspect: found 0 arguments; expected 1 or 2", "inspect"},
		{misuse, "inspect: found 3 arguments", "inspect a b c"},
		{misuse, "inspect: found 3 arguments", "inspect -- a -b -c"},
		{failed, `has used a rule "-a"`, "inspect -- -a -b"},
		{misuse, `-shown: found "a{b"; expected a whole key`, "inspect -shown login a{b"},
		{misuse, `-shown: found "a%#0"; expected a whole key`, "block login a%#0 -shown -for 1h"},
		{misuse, "counts by {user}: name a key", "inspect login"},
		{misuse, "counts by {user}: name a key", "inspect login _"},
		{misuse, "one count for everybody: leave out the key", "inspect all ann"},
		{failed, `has used a rule "log\x1bin"`, "inspect log\x1bin ann"},
		{misuse, "found no -for; expected one such as -for 1h", "block login ann"},
		{misuse, "expected a duration above zero", "block login ann -for -1h"},
		{misuse, "invalid value", "block login ann -for soon"},
		{failed, "expected more than 0, up to 30d", "block login ann -for 31d"},
		{misuse, "an argument is empty", "block login _ -for 1h"},
		{misuse, "found 1 argument; expected 2", "unblock login"},
		{misuse, "invalid value", "override set login -limit many"},
		{misuse, "invalid value", "override set login -limit 1.5"},
		{misuse, "expected enforce, shadow or trigger", "override set login -mode off"},
		{failed, "found no change", "override set login"},
		{failed, "expected 0 to", "override set login -limit -1"},
		{failed, "name: found", "override set a:b -limit 1"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "inspect mars ann"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "reset mars ann"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "unblock mars ann"},
		{failed, `rule "mars": tz: unknown time zone "Mars/Olympus"`, "acl"},
		{misuse, "-every: found 1ms; expected 1s or more", "top -every 1ms"},
		{misuse, "not defined: -once", "rules -once"},
		{misuse, "-rules: /none: no such file", "-rules /none rules"},
		{misuse, "expected a URL such as redis://", "-redis http://127.0.0.1 rules"},
		{misuse, "expected a URL such as redis://", "-redis redis://u:s3cret@h:port rules"},
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
	for name, c := range commands {
		args := append(strings.Fields(name), []string{"login", "ann"}[:c.least]...)
		switch name {
		case "block":
			args = append(args, "-for", "1h")
		case "override set":
			args = append(args, "-limit", "1")
		case "acl", "doctor": // these say so in their output
			continue
		}
		require(t, "127.0.0.1:1", failed, "cannot be reached", args...)
	}
}

// Each command fails if its output cannot be written.
func TestLostOutput(t *testing.T) {
	server := redistest.Start(t)
	useBlocks(t, server, newFleet(t, server.Addr))
	lost := writerFunc(func([]byte) (int, error) { return 0, errors.New("output is lost") })
	for name, c := range commands {
		for _, flags := range [][]string{nil, {"-json"}} {
			args := append(flags, append(strings.Fields(name), []string{"login", "ann"}[:c.most]...)...)
			switch name {
			case "block":
				args = append(args, "-for", "1h")
			case "override set":
				args = append(args, "-limit", "1")
			}
			var errs bytes.Buffer
			if s := run(t.Context(), args, "redis://"+server.Addr, lost, &errs); s != failed || !strings.Contains(errs.String(), "output is lost") {
				t.Errorf("%q: status %d, %s", args, s, errs.String())
			}
		}
	}
}

// No text from the store reaches a terminal unescaped.
func TestHostileStore(t *testing.T) {
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
		"override list", "blocked", "blocked login", "override clear login", "override set login -limit 3", "top -once", "doctor", "acl", "inspect nobody",
	} {
		for _, flags := range [][]string{nil, {"-json"}} {
			var out, errs bytes.Buffer
			_ = run(ctx, append(flags, strings.Fields(command)...), "redis://"+server.Addr, &out, &errs)
			requirePrintable(t, strings.ReplaceAll(out.String()+errs.String(), "\t", ""))
			if out.Len()+errs.Len() == 0 {
				t.Errorf("%s prints nothing", command)
			}
		}
	}
}
