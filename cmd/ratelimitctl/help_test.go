package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// Help needs no server, and prints no secret of the environment.
func TestHelp(t *testing.T) {
	secret := strings.Repeat("s3cret", 6)
	hidden := env("redis://ann:"+secret+"@nowhere:1", "RATELIMIT_SECRET", secret)
	general, status := ctlWith(t, hidden, "", "-h")
	if status != done || !strings.HasPrefix(general, usage) || !strings.Contains(general, "-redis URL") {
		t.Errorf("status %d, got %s", status, general)
	}
	for i := range commands {
		c := &commands[i]
		words := strings.Fields(c.name)
		one, status := ctlWith(t, hidden, "", append([]string{"help"}, words...)...)
		if status != done || !strings.HasPrefix(one, "usage: ratelimitctl "+c.name) || !strings.Contains(one, c.short) {
			t.Errorf("%s: status %d, got %s", c.name, status, one)
		}
		for _, flag := range strings.Fields(c.flags) {
			if !strings.Contains(one, "  -"+flag) {
				t.Errorf("%s: the help lacks -%s:\n%s", c.name, flag, one)
			}
		}
		if same, _ := ctlWith(t, hidden, "", append(words, "-h")...); same != one {
			t.Errorf("%s -h prints\n%s", c.name, same)
		}
		if !strings.Contains(general, "  "+strings.TrimSpace(c.name+" "+c.args)) {
			t.Errorf("the general help lacks %s", c.name)
		}
		if strings.Contains(general+one, "s3cret") {
			t.Errorf("%s: the help has a secret", c.name)
		}
	}
	for _, args := range []string{"help override", "override -h", "-json override -json -help", "override nothing"} {
		if text, status := ctlWith(t, hidden, "", strings.Fields(args)...); (status == done && strings.Count(text, "usage: ") == 3) == strings.HasSuffix(args, "nothing") {
			t.Errorf("%s: status %d, got %s", args, status, text)
		}
	}
	for args, other := range map[string]string{"help inspect": "kinds", "help acl": "keys", "help give": "changes", "help changes": "permits"} {
		if text, _ := ctlWith(t, hidden, "", strings.Fields(args)...); strings.Contains(text, other) {
			t.Errorf("%s is about another command:\n%s", args, text)
		}
	}
}

// A shell gets the commands, flags and rules that can follow what is typed.
func TestCompletion(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login), "guess": ruleText(guess)})
	for line, want := range map[string]string{
		"ratelimitctl ins":                      "inspect",
		"ratelimitctl -prefix ratelimit ins":    "inspect",
		"ratelimitctl override ":                "set clear list",
		"ratelimitctl override s":               "set",
		"ratelimitctl help over":                "override",
		"ratelimitctl inspect ":                 "guess login",
		"ratelimitctl inspect -shown lo":        "login",
		"ratelimitctl override set login -fore": "-forever",
		"ratelimitctl -pre":                     "-prefix",
		"ratelimitctl inspect login ":           "",
		"ratelimitctl processes ":               "",
		"ratelimitctl":                          "",
	} {
		got, status := ctlWith(t, env("redis://"+server.Addr, "COMP_LINE", line), "", "completion")
		if status != done || strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("%q: status %d, got %q", line, status, got)
		}
	}
	cursor := env("redis://"+server.Addr, "COMP_LINE", "ratelimitctl ins login", "COMP_POINT", "16")
	if got, _ := ctlWith(t, cursor, "", "completion"); got != "inspect\n" {
		t.Errorf("before the cursor: %q", got)
	}
	if got, _ := ctlWith(t, env("redis://127.0.0.1:1", "COMP_LINE", "ratelimitctl inspect "), "", "completion"); got != "" {
		t.Errorf("without a server: %q", got)
	}
	for shell := range scripts {
		require(t, server.Addr, done, "ratelimitctl completion", "completion", shell)
	}
	require(t, server.Addr, misuse, "expected bash, zsh or fish", "completion", "sh")
}

// No part of a password reaches the output, wherever the URL breaks.
func TestNoSecretIsPrinted(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cret"
	var urls []string
	for _, bad := range []string{"#", "/", "?", "@", "%", ":", " ", "\\", "[", "\n"} {
		urls = append(urls, "redis://user:7"+bad+secret+"@127.0.0.1:1", "redis://user:"+secret+bad+"7@127.0.0.1:1", "redis://"+secret+bad+"@127.0.0.1:1/0",
			"redis://:"+secret+bad+"@127.0.0.1:1/x", "redis://127.0.0.1:1?password="+secret+bad+"&master_name=m", "rediss:"+bad+secret)
	}
	for _, url := range urls {
		for _, args := range [][]string{{"rules"}, {"doctor"}, {"-redis", url, "rules"}, {"-redis=" + url, "rules"}, {url, "rules"}, {"-h"}, {"rules", "-tls-ca", junk}, {"rules", "-tls-cert", junk}} {
			text, status := ctlWith(t, env(url, "RATELIMIT_SECRET", secret), "", args...)
			if strings.Contains(text, secret) || status == done && args[0] != "-h" {
				t.Errorf("%q %q: status %d, got %s", url, args, status, text)
			}
		}
	}
}
