package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// held is a hook that holds the commands on keys of a fleet until it is released.
type held struct{ release chan struct{} }

func (held) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h held) wait(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()...), ".fleet:") {
			<-h.release
		}
	}
}

func (h held) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.wait(cmd)
		return next(ctx, cmd)
	}
}

func (h held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.wait(cmds...)
		return next(ctx, cmds)
	}
}

// No call waits until settings are read. A change waits while they are, up to its context's end.
func TestNoCallWaitsForSettings(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	h := held{make(chan struct{})}
	release := sync.OnceFunc(func() { close(h.release) })
	defer release()
	client.AddHook(h)
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	limit, q := int64(1), ratelimit.Request{Rule: ratelimit.PerSecond(9)}
	for _, call := range []func(context.Context, ...ratelimit.Request) (ratelimit.Decision, error){l.Allow, l.Wait, l.Peek, l.Allow} {
		if d, err := call(t.Context(), q); err != nil || !d.Allowed {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Overrides().Set(short, "r", ratelimit.Override{Limit: &limit}); err == nil {
		t.Error("a change is made while the settings are read")
	}
	release()
	if err := l.Overrides().Set(t.Context(), "r", ratelimit.Override{Limit: &limit}); err != nil {
		t.Error(err)
	}
}

// Settings hold and end by the clock that a test gives to its store.
func TestSettingsByTheClockOfATest(t *testing.T) {
	l, clock := limittest.New(t)
	start, moved := clock.Now(), time.Duration(0)
	own := func() time.Time { return start.Add(moved) }
	for name, c := range map[string]struct {
		limiter *ratelimit.Limiter
		advance func(time.Duration)
	}{
		"limittest": {l, clock.Advance},
		"memstore":  {ratelimit.New(memstore.New(memstore.WithClock(own))), func(d time.Duration) { moved += d }},
	} {
		t.Run(name, func(t *testing.T) {
			l, ctx, two := c.limiter, ratelimit.WithActor(t.Context(), "kim", ""), int64(2)
			q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Minute}, Key: "ann"}
			if err := l.Overrides().Set(ctx, "r", ratelimit.Override{Limit: &two, Until: start.Add(2 * time.Hour)}); err != nil {
				t.Fatal(err)
			}
			if err := l.Block(ctx, time.Hour, q); err != nil {
				t.Fatal(err)
			}
			require := func(allowed bool, limit int64, retry time.Duration) {
				t.Helper()
				d, err := l.Allow(t.Context(), q)
				if err != nil || d.Allowed != allowed || d.RetryAfter != retry {
					t.Errorf("got %+v, %v; want %t, %s", d, err, allowed, retry)
				}
				if peek, err := l.Peek(t.Context(), ratelimit.Request{Rule: q.Rule, Key: "bob"}); err != nil || peek.Quotas[0].Limit != limit {
					t.Errorf("got %+v, %v; want a limit of %d", peek, err, limit)
				}
			}
			require(false, 2, time.Hour)
			c.advance(time.Hour - time.Second)
			require(false, 2, time.Second)
			c.advance(time.Second)
			require(true, 2, 0)
			c.advance(time.Hour)
			require(true, 5, 0)
			if all, err := l.Overrides().List(ctx); err != nil || len(all) != 1 || !all[0].At.Equal(start) {
				t.Errorf("got %+v, %v", all, err)
			}
		})
	}
}

// Where the limiter hashes subjects, nothing that the fleet keeps shows one: settings, changes, statistics, whatever was set, blocked or counted.
func TestTheFleetShowsNoSubject(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	l := ratelimit.New(redisstore.New(client, redisstore.WithStats(), redisstore.WithTimeout(time.Minute)), ratelimit.WithPrefix("p"), ratelimit.WithSubjectHash(make([]byte, 32)))
	ctx, limit, q := ratelimit.WithActor(t.Context(), "kim", "abuse"), int64(2), ratelimit.Request{
		Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour}, Key: "eve@example.org",
	}
	for range 3 {
		if _, err := l.Allow(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	reset := func() error { _, err := l.Reset(ctx, q); return err }
	for _, err := range []error{
		l.Overrides().Set(ctx, "r", ratelimit.Override{Key: q.Key, Limit: &limit}), l.Block(ctx, time.Hour, q), l.Unblock(ctx, q), l.Block(ctx, time.Hour, q),
		l.Overrides().Clear(ctx, "r", q.Key), reset(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dump := func() (text string) {
		for _, key := range client.Keys(t.Context(), "*").Val() {
			text += key + " "
			switch client.Type(t.Context(), key).Val() {
			case "hash":
				text += fmt.Sprint(client.HGetAll(t.Context(), key).Val())
			case "list":
				text += fmt.Sprint(client.LRange(t.Context(), key, 0, -1).Val())
			case "zset":
				text += fmt.Sprint(client.ZRange(t.Context(), key, 0, -1).Val())
			case "string":
				text += client.Get(t.Context(), key).Val()
			}
			text += "\n"
		}
		return text
	}
	text := dump()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(text, `"calls":3`); text = dump() { // the statistics are published
		if time.Now().After(deadline) {
			t.Fatalf("some is missing in\n%s", text)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, want := range []string{`block:r:{`, `"what":"block"`, `"what":"reset"`, `"what":"clear"`, `"what":"set"`, `"cleared":true`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "example.org") {
		t.Errorf("the subject is shown:\n%s", text)
	}
}
