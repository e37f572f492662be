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

// exercise is a limiter that does all that limiters do, and its first error. It does not use Ping, which tries each command.
type exercise struct {
	*ratelimit.Limiter
	ctx context.Context
	err error
}

// doAll returns the first error of a limiter on a store that does all it can.
func doAll(t *testing.T, store ratelimit.Store) error {
	e := &exercise{Limiter: ratelimit.New(store), ctx: t.Context()}
	for _, step := range []func(){e.decide, e.giveUp, e.insert, e.members, e.settings} {
		if step(); e.err != nil {
			break
		}
	}
	return e.err
}

func (e *exercise) check(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *exercise) allow(requests ...ratelimit.Request) ratelimit.Decision {
	d, err := e.Allow(e.ctx, requests...)
	e.check(err)
	return d
}

var sliding = ratelimit.Rule{Name: "sliding", Limit: 2, Per: 100 * time.Millisecond}

// decide charges, refuses, gives back, settles, peeks and forgets, under rules of all kinds.
func (e *exercise) decide() {
	for _, rule := range []ratelimit.Rule{
		sliding,
		{Name: "counter", Limit: 5, Per: time.Hour, Algorithm: ratelimit.SlidingCounter},
		{Name: "distinct", Limit: 5, Per: time.Hour, Distinct: "{m}"},
		{Name: "calendar", Limit: 5, Cron: "@yearly"},
		{Name: "fixed", Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		{Name: "bucket", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		{Name: "warm", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
		{Name: "leased", Limit: 50, Per: time.Hour, Lease: 100 * time.Millisecond},
		{Name: "block", Limit: 1, Per: time.Hour, Block: time.Hour},
		{Name: "shadow", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeShadow},
		{Name: "trigger", Limit: 1, Per: time.Hour, Mode: ratelimit.ModeTrigger},
	} {
		r := ratelimit.Request{Rule: rule, Key: "k"}
		if rule.Distinct != "" {
			r.Member = "m"
		}
		e.check(e.allow(r).Refund(e.ctx))
		if rule.Distinct == "" {
			e.check(e.allow(r).Settle(e.ctx, 2))
		}
		for range 3 {
			e.allow(r)
		}
		_, err := e.Peek(e.ctx, r)
		e.check(err)
		_, err = e.Reset(e.ctx, r)
		e.check(err)
	}
}

// giveUp makes calls that wait and give up, twice, so that those of the second time find free places.
func (e *exercise) giveUp() {
	leaky := ratelimit.Rule{Name: "leaky", Limit: 5, Per: 100 * time.Millisecond, Algorithm: ratelimit.LeakyBucket}
	short := ratelimit.Rule{Name: "short", Limit: 1, Per: 40 * time.Millisecond}
	for range 2 {
		for _, rule := range []ratelimit.Rule{sliding, leaky, short} {
			r := ratelimit.Request{Rule: rule, Key: "w"}
			e.allow(r)
			e.allow(r)
			ctx, cancel := context.WithTimeout(e.ctx, 50*time.Millisecond)
			_, _ = e.Wait(ctx, r) // its end is no failure
			cancel()
		}
	}
}

// insert charges calls while another one has a later place.
func (e *exercise) insert() {
	one, more := ratelimit.Rule{Name: "late", Limit: 1, Per: 400 * time.Millisecond}, ratelimit.Rule{Name: "late", Limit: 9, Per: 400 * time.Millisecond}
	e.allow(ratelimit.Request{Rule: one})
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = e.Wait(e.ctx, ratelimit.Request{Rule: one})
	}()
	time.Sleep(20 * time.Millisecond)
	e.check(e.allow(ratelimit.Request{Rule: more, Cost: 2}).Refund(e.ctx))
	<-waited
}

// members counts members that come and go.
func (e *exercise) members() {
	rule := ratelimit.Rule{Name: "members", Limit: 2, Per: 30 * time.Millisecond, Distinct: "{m}"}
	for i := range 6 {
		d := e.allow(ratelimit.Request{Rule: rule, Member: fmt.Sprint(i % 4)})
		if i == 0 {
			e.check(d.Refund(e.ctx))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// settings changes overrides and blocks, and reads the rules.
func (e *exercise) settings() {
	e.check(e.Overrides().Set(e.ctx, "sliding", ratelimit.Override{Per: time.Minute}))
	_, err := e.Overrides().SetNew(e.ctx, "fixed", ratelimit.Override{Per: time.Minute})
	e.check(err)
	e.check(e.Overrides().Clear(e.ctx, "sliding"))
	e.check(e.Block(e.ctx, time.Hour, ratelimit.Request{Rule: sliding, Key: "b"}))
	_, err = e.Rules(e.ctx)
	e.check(err)
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
		return doAll(t, redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
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
