package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// printedACL is what acl prints for a server.
type printedACL struct{ Required, Writing, Faster, Warning, Plain []string }

func aclOf(t *testing.T, addr string) (p printedACL, setUser string) {
	t.Helper()
	text, _ := ctl(t, addr, "-json", "acl")
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	text, _ = ctl(t, addr, "acl")
	setUser, _, _ = strings.Cut(text, "\n")
	return p, strings.Replace(setUser, "PASSWORD", "x", 1)
}

// exercise does all that limiters do, with rules of all kinds, and returns the first error. It does not use Ping, which tries each
// command.
func exercise(t *testing.T, store ratelimit.Store) error {
	l, ctx := ratelimit.New(store), t.Context()
	var failed error
	check := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	allow := func(requests ...ratelimit.Request) ratelimit.Decision {
		d, err := l.Allow(ctx, requests...)
		check(err)
		return d
	}
	abandon := func(r ratelimit.Request) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _ = l.Wait(ctx, r) // its end is no failure
	}
	rules := []ratelimit.Rule{
		{Name: "sliding", Limit: 2, Per: 100 * time.Millisecond},
		{Name: "counter", Limit: 5, Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
		{Name: "distinct", Limit: 5, Per: time.Hour, Distinct: "{m}"},
		{Name: "calendar", Limit: 5, Cron: "@yearly"},
		{Name: "fixed", Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		{Name: "bucket", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		{Name: "warm", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
		{Name: "leaky", Limit: 5, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket},
		{Name: "block", Limit: 1, Per: time.Hour, Block: time.Hour},
		{Name: "shadow", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow},
		{Name: "trigger", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeTrigger},
	}
	for _, rule := range rules {
		r := ratelimit.Request{Rule: rule, Key: "k"}
		if rule.Distinct != "" {
			r.Member = "m"
		}
		d := allow(r)
		check(d.Refund(ctx))
		if rule.Distinct == "" {
			check(allow(r).Settle(ctx, 2))
		}
		for range 3 {
			allow(r)
		}
		_, err := l.Peek(ctx, r)
		check(err)
		_, err = l.Reset(ctx, r)
		check(err)
	}
	if failed != nil {
		return failed
	}
	// Calls that wait and give up, one that is admitted before a later one, and one after all of a window has left.
	for range 2 {
		for _, rule := range []ratelimit.Rule{rules[0], rules[7], {Name: "short", Limit: 1, Per: 40 * time.Millisecond}} {
			r := ratelimit.Request{Rule: rule, Key: "w"}
			allow(r)
			allow(r)
			abandon(r)
		}
	}
	one, more := ratelimit.Rule{Name: "late", Limit: 1, Per: 400 * time.Millisecond}, ratelimit.Rule{Name: "late", Limit: 9, Per: 400 * time.Millisecond}
	allow(ratelimit.Request{Rule: one})
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = l.Wait(ctx, ratelimit.Request{Rule: one})
	}()
	time.Sleep(20 * time.Millisecond)
	check(allow(ratelimit.Request{Rule: more, Cost: 2}).Refund(ctx))
	<-waited
	distinct := ratelimit.Rule{Name: "members", Limit: 2, Per: 30 * time.Millisecond, Distinct: "{m}"}
	for i := range 6 {
		d := allow(ratelimit.Request{Rule: distinct, Member: fmt.Sprint(i % 4)})
		if i == 0 {
			check(d.Refund(ctx))
		}
		time.Sleep(10 * time.Millisecond)
	}
	check(l.Overrides().Set(ctx, "sliding", ratelimit.Override{Per: time.Minute}))
	_, err := l.Overrides().SetNew(ctx, "fixed", ratelimit.Override{Per: time.Minute})
	check(err)
	check(l.Overrides().Clear(ctx, "sliding"))
	check(l.Block(ctx, time.Hour, ratelimit.Request{Rule: rules[0], Key: "b"}))
	_, err = l.Rules(ctx)
	check(err)
	return failed
}

// A limiter does all it can with the commands that acl prints, and fails without any one of them.
func TestACL(t *testing.T) {
	server := redistest.Start(t)
	printed, setUser := aclOf(t, server.Addr)
	as := func(name, more string) error {
		server.Do("FLUSHALL")
		server.Do("SCRIPT FLUSH")
		server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + more)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: name, Password: "x"})
		defer client.Close()
		return exercise(t, redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
	}
	writing := permitted(printed.Writing)
	if err := as("all", writing); err != nil {
		t.Errorf("what acl prints does not suffice: %v", err)
	}
	if err := as("faster", writing+permitted(printed.Faster)); err != nil {
		t.Errorf("what acl prints for speed does not suffice: %v", err)
	}
	for _, command := range append(slices.Clone(printed.Required), "HSET", "HSETNX", "HDEL") {
		if err := as("no"+strings.ToLower(command), writing+" -"+strings.ToLower(command)); err == nil {
			t.Errorf("all works without %s", command)
		}
	}
}

// On a cluster a client asks for the layout besides.
func TestACLOfACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	printed, setUser := aclOf(t, cluster[0].Addr)
	as := func(name, more string) error {
		for _, server := range cluster {
			server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + more)
		}
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Username: name, Password: "x"})
		defer client.Close()
		store := redisstore.New(client, redisstore.WithTimeout(20*time.Second))
		if err := ratelimit.New(store).Ping(t.Context()); err != nil {
			return err
		}
		_, err := ratelimit.New(store).Allow(t.Context(),
			ratelimit.Request{Rule: ratelimit.PerMinute(5), Key: "a"}, ratelimit.Request{Rule: ratelimit.PerHour(5), Key: "b"})
		return err
	}
	if err := as("all", ""); err != nil {
		t.Errorf("what acl prints does not suffice: %v", err)
	}
	for _, command := range printed.Required {
		if err := as("no"+strings.ToLower(strings.ReplaceAll(command, "|", "")), " -"+strings.ToLower(command)); err == nil {
			t.Errorf("it works without %s", command)
		}
	}
}

// Without scripts, the commands of package plain suffice, and each is needed.
func TestACLWithoutScripts(t *testing.T) {
	server := redistest.Start(t)
	printed, setUser := aclOf(t, server.Addr)
	setUser, _, _ = strings.Cut(setUser, " -@all")
	as := func(name, more string) error {
		server.Do(strings.Replace(setUser, " ratelimit ", " "+name+" ", 1) + " -@all" + permitted(printed.Plain) + more)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: name, Password: "x"})
		defer client.Close()
		l := ratelimit.New(plain.New(client))
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
