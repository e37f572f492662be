package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// With what acl -operator prints, all commands of the tool work, and each of its permissions is needed. All else is refused.
func TestACLOfTheOperator(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	rules := map[string]string{}
	for _, rule := range rulesOfAllKinds() {
		rule.Name = fmt.Sprint("rule", len(rules))
		rules[rule.Name] = ruleText(rule)
	}
	f.known(rules)
	useBlocks(t, server, f)
	f.waitUntilSeen(t) // it answers settings recover
	printed, setUser := aclOf(t, server.Addr, "acl", "-operator")
	broken := func(user, less string) (wrong string) {
		permit(t, server, setUser, user, "", less)
		as := env("redis://" + user + ":x@" + server.Addr)
		lines := [][]string{{"inspect", "-all", "ann"}, {"top", "-once"}}
		for i := range commands {
			if c := &commands[i]; !c.local && c.name != "top" && c.name != "serve" && (c.name != "settings recover" || less == "") { // serve goes on, and recover takes seconds
				lines = append(lines, example(c))
			}
		}
		for _, args := range lines {
			text, status := ctlWith(t, as, "", args...)
			if status != done || strings.Contains(text, "may not run") {
				wrong += fmt.Sprintf("%q: status %d, %s\n", args, status, text)
			}
			for line := range strings.Lines(text) {
				_, permissions, hidden := strings.Cut(line, "may not ask")
				if hidden && strings.Contains(strings.NewReplacer("+slowlog|get", "", "+acl|log", "", "+acl|whoami", "", "+config|get", "").Replace(permissions), "+") {
					wrong += line
				}
			}
		}
		return wrong
	}
	if wrong := broken("kim", ""); wrong != "" {
		t.Errorf("what acl prints does not suffice:\n%s", wrong)
	}
	for _, command := range printed.Operator {
		if broken("no"+strings.ToLower(strings.ReplaceAll(command, "|", "")), command) == "" {
			t.Errorf("all works without %s", command)
		}
	}
	requireRefused(t, server, setUser, "other")
}

// requireRefused checks that a user with the printed permissions may do nothing beyond the prefix.
func requireRefused(t *testing.T, server *redistest.Server, setUser, name string) {
	t.Helper()
	client := permit(t, server, setUser, name, "", "")
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET save x", "ACL LIST", "ACL SETUSER x", "SHUTDOWN", "MONITOR", "SLOWLOG GET",
		"CLIENT LIST", "SUBSCRIBE x", "GET other", "SET other x", "SET ratelimits x", "DEL other", "LRANGE other 0 1", "EVAL return 0", "HSET other.fleet:{other}:settings a b",
	} {
		args := []any{}
		for _, arg := range strings.Fields(command) {
			args = append(args, arg)
		}
		if args[0] == "EVAL" {
			args = []any{"EVAL", "return redis.call('GET', KEYS[1])", 1, "other"}
		}
		if err := client.Do(t.Context(), args...).Err(); err == nil || !strings.Contains(err.Error(), "permission") && !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s may run %s: %v", name, command, err)
		}
	}
}

// With what acl -settings prints, a program changes settings; with what acl prints it does not. Neither may do more.
func TestACLOfPrograms(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	for name, args := range map[string][]string{"plain": {"acl"}, "writer": {"acl", "-settings"}} {
		_, setUser := aclOf(t, server.Addr, args...)
		client := permit(t, server, setUser, name, "", "")
		l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		ctx := ratelimit.WithActor(t.Context(), "desk", "a call")
		q := ratelimit.Request{Rule: login, Key: "ann"}
		for what, do := range map[string]func() error{
			"set":     func() error { return l.Overrides().Set(ctx, "login", ratelimit.Override{Limit: new(int64(1))}) },
			"clear":   func() error { return l.Overrides().Clear(ctx, "login", "") },
			"block":   func() error { return l.Block(ctx, time.Hour, q) },
			"unblock": func() error { return l.Unblock(ctx, q) },
			"reset":   func() error { _, err := l.Reset(ctx, q); return err },
		} {
			if err := do(); (err == nil) != (name == "writer") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := l.Allow(t.Context(), q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		requireRefused(t, server, setUser, name+"s")
	}
}

// TestSentinel finds the master by a Sentinel. Without the master's name, the tool says that the server is a Sentinel.
func TestSentinel(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	sentinel := server.StartSentinels(t, "shop", 1, 60_000, 0)[0]
	text, status := ctlWith(t, env("redis://"+sentinel.Addr+"?master_name=shop"), "", "rules")
	if status != done || !strings.Contains(text, "login") {
		t.Errorf("status %d, %s", status, text)
	}
	if text, status := ctlWith(t, env("redis://"+sentinel.Addr+"?master_name=shop"), "", "doctor"); status != done || !strings.Contains(text, "Redis 7") {
		t.Errorf("status %d, %s", status, text)
	}
	for _, command := range []string{"rules", "doctor", "inspect login ann"} {
		require(t, sentinel.Addr, failed, "the server is a Sentinel, which keeps no counts: add ?master_name=shop to the URL", strings.Fields(command)...)
	}
}

// A cluster's prefixes and rules are found from any of its servers.
func TestPrefixesOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	for _, prefix := range []string{"a", "b", "c", "d", "e"} {
		declare(t, client, prefix, ruleText(login))
	}
	for _, server := range cluster {
		require(t, server.Addr, failed, "on this server there is a, b, c, d, e: see -prefix", "rules")
		require(t, server.Addr, done, "login", "-prefix", "c", "rules")
	}
}
