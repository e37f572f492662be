package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// With the rules that ratelimit -list prints, the tool finds the counts of the rules in generated code.
func TestListedRules(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("go", "run", "../ratelimit", "-list", "-json", "../../examples/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
	generated := wrap.NewRules("examples/sms.Sender.SendCode", // as in examples/sms
		ratelimit.Rule{Key: "{phone}", Limit: 1, Per: time.Minute},
		ratelimit.Rule{Key: "{phone}", Limit: 10, Cron: "0 0 0 * * *", TZ: "Asia/Shanghai"},
		ratelimit.Rule{Key: "{clientIP(ctx)}", Limit: 100, Per: time.Hour},
	)
	if err := wrap.Take(t.Context(), generated.On(limiter), generated, "555", "555", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	const method = "examples/sms.Sender.SendCode"
	require(t, server.Addr, done, method+"#3  100 per hour  enforce  1 of 100  99", "-rules", file, "inspect", method+"#3", "192.0.2.1")
	require(t, server.Addr, done, method+"#2  10 per calendar day (Asia/Shanghai)  enforce  1 of 10  9", "-rules", file, "inspect", method+"#2", "555")
	require(t, server.Addr, done, "computed per calendar day (Asia/Tokyo)", "-rules", file, "rules")
	require(t, server.Addr, done, "not yet", "-rules", file, "rules")
	require(t, server.Addr, done, "0 rules in use and 1 of -rules;", "-rules", listFile(t), "acl")
	server.Do("ACL SETUSER default -hscan")
	require(t, server.Addr, done, "rules of all kinds, because the rules in use cannot be read: ", "acl")
	server.Do("ACL SETUSER default +hscan")

	// A block with the name of a further unnamed rule refuses calls.
	require(t, server.Addr, done, "→ blocked until", "-rules", file, "block", method+"#3", "192.0.2.1", "-for", "1h")
	if err := limiter.Ping(t.Context()); err != nil { // reads the blocks
		t.Fatal(err)
	}
	if err := wrap.Take(t.Context(), generated.On(limiter), generated, "556", "556", "192.0.2.1"); err == nil {
		t.Error("a blocked address is admitted")
	}
	require(t, server.Addr, done, "→ not blocked", "-rules", file, "unblock", method+"#3", "192.0.2.1")
	require(t, server.Addr, failed, "give others with -rules", "block", "examples/sms.Sender.Other#3", "192.0.2.1", "-for", "1h") // in no list
	require(t, server.Addr, misuse, "for all unnamed rules of a method: write "+method, "override", "set", method+"#3", "-limit", "1", "-for", "1h")
}

func TestBadLists(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "rules.json")
	for text, want := range map[string]string{
		"":               "expected the output of ratelimit -list -json",
		"{}":             "expected the output of ratelimit -list -json",
		"[][]":           "rules.json: found text after the list; write one list",
		`[{"rule":"a"}]`: `rule a: rule "a": per: a rule needs a window`,
		`[{"rule":"a","method":"p.T.M","algorithm":"sliding-window"}]`:                                       "rule a: rule \"a\": per: a rule needs a window",
		`[{"rule":"a b","method":"p.T.M","algorithm":"sliding-window","window":"1m"}]`:                       "expected no spaces",
		`[{"rule":"a","method":"p.T.M","algorithm":"sliding-window","window":"1m","settings":{"mode":"x"}}]`: `unknown mode "x"`,
		`[{"rule":"a","method":"p.T.M","algorithm":"sliding-window","window":"\u001b[2J"}]`:                  `\x1b`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		require(t, server.Addr, misuse, want, "-rules", file, "rules")
	}
	require(t, server.Addr, misuse, "no such file", "-rules", filepath.Join(t.TempDir(), "none"), "rules")
	require(t, server.Addr, misuse, "directory", "-rules", strings.TrimSuffix(file, "/rules.json"), "rules")
}
