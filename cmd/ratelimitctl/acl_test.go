package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// aclOf returns the output of acl for a prefix, and the command that creates a user.
func aclOf(t *testing.T, addr string, flags ...string) (p permissions, setUser string) {
	t.Helper()
	text, _ := ctl(t, addr, append([]string{"-json"}, flags...)...)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	text, _ = ctl(t, addr, flags...)
	setUser, _, _ = strings.Cut(text, "\n")
	return p, strings.Replace(setUser, "PASSWORD", "x", 1)
}

// permit creates a user with the permissions that acl prints and those in more, but without less. It returns a client of that user.
func permit(t *testing.T, server *redistest.Server, setUser, name, more, less string) *redis.Client {
	t.Helper()
	if less != "" {
		more += " -" + strings.ToLower(less)
	}
	if got := server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + more); got != "OK" {
		t.Fatalf("%s%s: %s", setUser, more, got)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: name, Password: "x"})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// For each kind of rule, a limiter can do everything with the commands that acl prints, and fails without any one of them.
func TestACL(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	kinds := map[string]ratelimit.Rule{
		"sliding":  {Limit: 50, Per: time.Hour},
		"fixed":    {Limit: 50, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		"calendar": {Limit: 50, Cron: "@yearly"},
		"bucket":   {Limit: 50, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		"leaky":    {Limit: 50, Per: time.Hour, Algorithm: ratelimit.LeakyBucket},
		"prepaid":  {Limit: 50, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Prepay: true},
		"warm":     {Limit: 50, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
		"counter":  {Limit: 50, Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
		"distinct": {Limit: 5, Per: time.Hour, Distinct: "{m}"},
		"yearly":   {Limit: 5, Cron: "@yearly", Distinct: "{m}"},
		"blocks":   {Limit: 5, Per: time.Hour, Distinct: "{m}", Block: time.Hour},
	}
	for name, rule := range kinds {
		rule.Name = name
		kinds[name] = rule
		register(t, server, name, rule)
	}
	for name, rule := range kinds {
		t.Run(name, func(t *testing.T) {
			printed, setUser := aclOf(t, server.Addr, "-prefix", name, "acl", "-settings")
			if !strings.HasPrefix(printed.For, "1 rule in use") {
				t.Errorf("it is for %s", printed.For)
			}
			as := func(user, more, less string) error {
				server.Do("SCRIPT FLUSH")
				return doAll(t, server, permit(t, server, setUser, user, more, less), rule)
			}
			if err := as(name+"all", "", ""); err != nil {
				t.Errorf("what acl prints does not suffice: %v", err)
			}
			if err := as(name+"faster", permitted(printed.Faster), ""); err != nil {
				t.Errorf("what acl prints for speed does not suffice: %v", err)
			}
			for _, command := range union(printed.Required, []string{"HSET", "PERSIST", "PEXPIRE", "SET", "ZADD"}) {
				tries := 0
				for ; tries < 10 && as(name+"no"+strings.ToLower(command), "", command) == nil; tries++ {
				} // a refund on a machine that stops for a while may fail without an error
				if tries == 10 {
					t.Errorf("all works without %s", command)
				}
			}
		})
	}
}

// register writes a rule to the list of a prefix, as limiters do.
func register(t *testing.T, server *redistest.Server, prefix string, rule ratelimit.Rule) {
	t.Helper()
	f := newFleet(t, server.Addr)
	declare(t, f.client, prefix, ruleText(rule))
}

// On a cluster, a client also needs the permission to ask for the layout.
func TestACLOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, "--acllog-max-len", "1000")
	printed, setUser := aclOf(t, cluster[0].Addr, "acl")
	as := func(name, more string) error {
		for _, server := range cluster {
			server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + more)
		}
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Username: name, Password: "x"})
		defer client.Close()
		l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err := l.Check(rulesOfAllKinds()...); err != nil {
			return err
		}
		if err := l.Ping(t.Context()); err != nil {
			return err
		}
		_, err := l.Allow(t.Context(),
			ratelimit.Request{Rule: ratelimit.PerMinute(5), Key: "a"}, ratelimit.Request{Rule: ratelimit.PerHour(5), Key: "b"})
		return err
	}
	if err := as("all", permitted(printed.Faster)); err != nil {
		t.Errorf("what acl prints does not suffice: %v", err)
	}
	for _, command := range printed.Required {
		if err := as("no"+strings.ToLower(strings.ReplaceAll(command, "|", "")), " -"+strings.ToLower(command)); err == nil {
			t.Errorf("it works without %s", command)
		}
	}
}

// For package plain, the commands that acl prints suffice, and each of them is needed.
func TestACLWithoutScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	printed, setUser := aclOf(t, server.Addr, "acl")
	setUser, _, _ = strings.Cut(setUser, " -@all")
	if err := newFleet(t, server.Addr).Overrides().Set(t.Context(), "other", ratelimit.Override{Limit: new(int64(1))}); err != nil {
		t.Fatal(err)
	}
	as := func(name, more string) error {
		server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + " -@all" + permitted(printed.Plain) + more)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: name, Password: "x"})
		defer client.Close()
		l := ratelimit.New(plain.New(client, plain.WithTimeout(20*time.Second)))
		if err := l.Ping(t.Context()); err != nil {
			return err
		}
		a := ratelimit.Request{Rule: ratelimit.Rule{Name: "a", Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow}}
		b := ratelimit.Request{Rule: ratelimit.Rule{Name: "b", Limit: 5, Cron: "@yearly"}}
		if _, err := l.Allow(t.Context(), a, b); err != nil {
			return err
		}
		d, err := l.Allow(t.Context(), a)
		if err != nil {
			return err
		}
		if _, err := l.Peek(t.Context(), a); err != nil {
			return err
		}
		return d.Refund(t.Context())
	}
	if err := as("all", ""); err != nil {
		t.Errorf("what acl prints does not suffice: %v", err)
	}
	for _, command := range printed.Plain {
		if err := as("no"+strings.ToLower(command), " -"+strings.ToLower(command)); err == nil {
			t.Errorf("it works without %s", command)
		}
	}
}

// Where scripts are forbidden, a user with what acl prints for package plain can change settings: with this tool, and in a program. A user whom
// that is not permitted is told what to do.
func TestSettingsWithoutScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	printed, setUser := aclOf(t, server.Addr, "acl", "-settings")
	head, _, _ := strings.Cut(setUser, " -@all")
	commands := union(printed.Plain, printed.Seen, printed.Settings)
	client := permit(t, server, head+" -@all"+permitted(commands), "noscripts", "", "")
	for name, store := range map[string]ratelimit.Store{"tool": redisstore.New(client, redisstore.WithTimeout(time.Minute)), "program": plain.New(client)} {
		l, ctx, q := ratelimit.New(store), ratelimit.WithActor(t.Context(), "kim", ""), ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: name}
		if err := errors.Join(l.Block(ctx, time.Hour, q), l.Overrides().Set(ctx, "r", ratelimit.Override{Key: name, Burst: 2}), l.Unblock(ctx, q)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if blocked, err := l.Blocked(ctx); err != nil || len(blocked) > 0 {
			t.Errorf("%s: got %v, %v", name, blocked, err)
		}
	}
	for i, missing := range []string{"EVALSHA", "HSET"} {
		l := ratelimit.New(redisstore.New(permit(t, server, setUser, fmt.Sprint("less", i), "", missing), redisstore.WithTimeout(time.Minute)))
		err := l.Block(t.Context(), time.Hour, ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: "k"})
		if err == nil || !strings.Contains(err.Error(), "ratelimitctl acl -settings") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}
