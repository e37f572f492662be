package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// kinds are the kinds of clients.
var kinds = map[string]func(testing.TB) *store{
	"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster, "ring": openRing,
}

// Reset forgets states, free places and blocks, and counts the states.
func TestReset(t *testing.T) {
	blocking := &engine.Rule{Name: "blocking", Tag: "1m", Kind: engine.SlidingWindow, Per: 60 * second, Block: 60 * second}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for range 2 {
				call := of(blocking, 1, "a", "b", "c")
				requireAdmits(t, s, func() engine.Call { return *clone(&call) }, 3, 1)
				call.Claims = append(call.Claims, of(minute, 1, "nobody").Claims...)
				if n, err := s.Reset(context.Background(), &call); n != 3 || err != nil {
					t.Fatalf("found %d states, %v, want 3", n, err)
				}
			}
		})
	}
}

// A charge that was certainly not given back keeps its Delta. One that perhaps was given back does not.
func TestAdjustFails(t *testing.T) {
	s, server := open(t)
	charged := of(minute, 5, "a")
	if _, err := s.Decide(context.Background(), &charged); err != nil {
		t.Fatal(err)
	}
	charged.Claims[0].Delta = -1
	server.Stop()
	_ = s.Client.(interface{ Close() error }).Close()
	if err := s.Adjust(context.Background(), &charged); err == nil || charged.Claims[0].Delta != -1 {
		t.Errorf("got %v, delta %d", err, charged.Claims[0].Delta)
	}
	for err, want := range map[error]bool{
		errors.New("EOF"): false, &net.OpError{Op: "read"}: false, &net.OpError{Op: "dial"}: true, breaker.Unsent{Err: errors.New("x")}: true,
		redis.ErrPoolTimeout: true, redis.ErrClosed: true, fmt.Errorf("wrapped: %w", redis.ErrPoolTimeout): true,
		reply("ERR x"): false, reply("WRONGTYPE x"): false, reply("LOADING x"): true, reply("NOPERM x script: y"): false,
	} {
		if untaken(err) != want {
			t.Errorf("%v: nothing done is %t", err, !want)
		}
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// A refund gives back exactly the charge, once.
func TestAdjust(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *store{
		"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			call := of(minute, 10, "a", "b")
			call.Claims[1].Cost = 4
			if _, err := s.Decide(context.Background(), &call); err != nil {
				t.Fatal(err)
			}
			call.Claims[0].Delta, call.Claims[1].Delta = 5, -3
			for range 2 {
				if err := s.Adjust(ended, &call); err != nil {
					t.Fatal(err)
				}
			}
			if left := rooms(t, s, call); left[0] != 4 || left[1] != 9 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) { settings(t, open(t)) })
	}
}

func settings(t *testing.T, s *store) {
	ctx, not0 := context.Background(), func(old string) bool { return old != "0" }
	for _, step := range []struct {
		text     string
		replaces func(old string) bool
		set      bool
	}{{"0", not0, true}, {"2", not0, false}, {"3", nil, true}, {"4", not0, true}} {
		if set, err := s.Set(ctx, "p", "rule", step.text, step.replaces); set != step.set || err != nil {
			t.Errorf("%s: got %t, %v", step.text, set, err)
		}
	}
	if all, err := s.Settings(ctx, "p"); len(all) != 1 || all["rule"] != "4" || err != nil {
		t.Errorf("got %v, %v", all, err)
	}
	if err := s.Unset(ctx, "p", "rule"); err != nil {
		t.Error(err)
	}
	if all, err := s.Settings(ctx, "p"); len(all) != 0 || err != nil {
		t.Errorf("got %v, %v", all, err)
	}
}

// A text that changes or goes while it is looked at is looked at again.
func TestSettingsThatChangeMeanwhile(t *testing.T) {
	server, hook := redistest.Start(t), new(flaky)
	client := connect(t, server.Addr)
	client.AddHook(hook)
	s := New(client, asking...).(*store)
	for name, step := range map[string]struct {
		meanwhile   string // a command
		before      string // another command, instead of during the look
		set         bool
		looks, text string
	}{
		"changed":         {meanwhile: "HSET p rule theirs", looks: "old theirs", text: "theirs"},
		"changed back":    {meanwhile: "HSET p rule old", looks: "old old", set: true, text: "ours"},
		"another":         {meanwhile: "HSET p other theirs", looks: "old old", set: true, text: "ours"},
		"gone":            {meanwhile: "DEL p", looks: "old", set: true, text: "ours"},
		"gone at first":   {before: "hget", looks: "", set: true, text: "ours"},
		"as it was found": {meanwhile: "PING", looks: "old", set: true, text: "ours"},
	} {
		server.Do("DEL p")
		server.Do("HSET p rule old")
		hook.before = func(cmd redis.Cmder) error {
			if cmd.Name() == step.before {
				server.Do("DEL p")
			}
			return nil
		}
		var looks []string
		set, err := s.Set(t.Context(), "p", "rule", "ours", func(old string) bool {
			if looks = append(looks, old); len(looks) == 1 {
				server.Do(step.meanwhile)
			}
			return old == "old"
		})
		if text := server.Do("HGET p rule"); set != step.set || err != nil || strings.Join(looks, " ") != step.looks || text != step.text {
			t.Errorf("%s: set is %t, error %v, looked at %q, the text is %s; want %+v", name, set, err, looks, text, step)
		}
	}
}

// Of a list with too many texts, little more is read than limiters follow.
func TestSettingsOfALongList(t *testing.T) {
	s, server := open(t)
	texts := make(map[string]string)
	for i := range 100_000 {
		texts[fmt.Sprint("rule", i)] = strings.Repeat("x", 100)
	}
	if err := s.Register(t.Context(), "p", texts, time.Hour); err != nil {
		t.Fatal(err)
	}
	server.Do("CONFIG RESETSTAT")
	found, err := s.Settings(t.Context(), "p")
	if err != nil || len(found) <= engine.MaxSettings || len(found) > 5*engine.MaxSettings {
		t.Errorf("got %d texts, error %v", len(found), err)
	}
	_, sent, _ := strings.Cut(server.Do("INFO stats"), "total_net_output_bytes:")
	var bytes int
	if _, err := fmt.Sscan(sent, &bytes); err != nil || bytes > 5*engine.MaxSettings*200 {
		t.Errorf("the server sent %d bytes, error %v", bytes, err)
	}
	for name, text := range found {
		if texts[name] != text {
			t.Fatalf("%s is %q", name, text)
		}
	}
}
