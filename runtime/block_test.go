package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

// A block refuses one key under one rule in all limiters until it ends or Unblock ends it. It charges nothing.
func TestBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memory.New(nil, 100, 1<<20), context.Background()
		l, other := New(store), New(store)
		ann := Request{Rule: Rule{Name: "login", Limit: 5, Per: time.Minute}, Key: "ann"}
		more := Request{Rule: Rule{Name: "mail", Limit: 5, Per: time.Minute}, Key: "ann"}
		allowed := func(l *Limiter, want bool, requests ...Request) Decision {
			t.Helper()
			d, err := l.Allow(ctx, requests...)
			if err != nil || d.Allowed != want {
				t.Fatalf("got %+v, error %v; want allowed %v", d, err, want)
			}
			return d
		}
		allowed(other, true, ann)
		if err := l.Block(WithUserID(ctx, "eve"), time.Hour, ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		d := allowed(l, false, more, ann)
		if d.Never || d.RetryAfter != 50*time.Minute || len(d.Violations) != 1 || d.Violations[0].Rule != "login" ||
			d.Violations[0].RetryAfter != d.RetryAfter || d.Violations[0].Never || d.Source != SourceBlock {
			t.Errorf("got %+v", d)
		}
		if _, err := l.Wait(ctx, ann); !errors.Is(err, ErrTooManyRequests) {
			t.Errorf("a call waits: %v", err)
		}
		if q, _ := l.Peek(ctx, more); q.Quotas[0].Remaining != 5 {
			t.Errorf("the other rule was charged: %+v", q)
		}
		allowed(l, true, Request{Rule: ann.Rule, Key: "bob"})
		_, _ = other.Allow(ctx, more) // has the blocks read
		synctest.Wait()
		allowed(other, false, ann)
		if err := l.Unblock(ctx, ann); err != nil {
			t.Fatal(err)
		}
		allowed(l, true, ann)
		if l.settings.current.Load() != nil {
			t.Error("there is a table of nobody")
		}
		if err := l.Block(ctx, time.Minute, ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		allowed(l, true, ann)
		synctest.Wait()
		if l.settings.current.Load() != nil {
			t.Error("blocks that are over are kept")
		}
	})
}

// A block does not make a rule in shadow mode refuse.
func TestBlockOfAShadow(t *testing.T) {
	l, ctx := New(memory.New(nil, 100, 1<<20)), t.Context()
	q := Request{Rule: Rule{Name: "r", Limit: 5, Per: time.Minute, Mode: ModeShadow}}
	if err := l.Block(ctx, time.Hour, q); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Allow(ctx, q); err != nil || !d.Allowed {
		t.Errorf("got %+v, error %v", d, err)
	}
}

func TestImpossibleBlocks(t *testing.T) {
	l, ctx := New(memory.New(nil, 100, 1<<20)), t.Context()
	q := Request{Rule: Rule{Name: "r"}}
	for want, err := range map[string]error{
		"found 0s; expected more than 0, up to 30d": l.Block(ctx, 0, q),
		`rule "r": block: found 30d1h; exp`:         l.Block(ctx, 721*time.Hour, q),
		"found none; expected one or more":          l.Block(ctx, time.Hour),
		"expected the name of the rule":             l.Unblock(ctx, Request{}),
		"expected p.T.M, the name of all":           l.Block(ctx, time.Hour, Request{Rule: Rule{Name: "p.T.M#2"}}),
		"expected p.T.N, the name of all":           l.Overrides().Set(ctx, "p.T.N#12", Override{Per: time.Minute}),
		"expected no spaces":                        l.Block(ctx, time.Hour, Request{Rule: Rule{Name: "a b"}}),
		"the key is empty":                          l.Block(ctx, time.Hour, Request{Rule: Rule{Name: "r", Key: "{x}"}}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The number of blocks in the store is bounded. Blocks that have ended or cannot be parsed are removed to make room.
func TestTooManyBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memory.New(nil, 100, 1<<20), context.Background()
		l := New(store)
		requests := func(from, n int) (all []Request) {
			for i := range n {
				all = append(all, Request{Rule: Rule{Name: "r"}, Key: fmt.Sprint(from + i)})
			}
			return all
		}
		if err := l.Block(ctx, time.Minute, requests(0, maxSettings)...); err != nil {
			t.Fatal(err)
		}
		err, ok := errors.AsType[*RuleError](l.Block(ctx, time.Minute, requests(maxSettings, 1)...))
		if !ok || !strings.Contains(err.Error(), "there would be more than 1000") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := store.Set(ctx, l.list(listBlocked), "forged", "{}", nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Block(ctx, time.Minute, requests(maxSettings, 1)...); err != nil {
			t.Error(err)
		}
		if texts, err := store.Settings(ctx, l.list(listBlocked)); len(texts) != 1 || err != nil {
			t.Errorf("%d are kept, error %v", len(texts), err)
		}
	})
}

// A decision looks for blocks without allocating, even if there are some.
func BenchmarkBlocked(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, rule := New(memory.New(nil, 100, 1<<20)), &prepared{Rule: Rule{Name: "r"}}
			blocks := map[ruleSubject]time.Time{}
			for i := range n {
				blocks[ruleSubject{"r", fmt.Sprint(i)}] = time.Now().Add(time.Hour)
			}
			if n > 0 {
				l.settings.current.Store(&inForce{blocks: blocks})
			}
			b.ReportAllocs()
			for b.Loop() {
				if l.settings.blockLeft(rule, "ann") > 0 {
					b.Fatal("blocked")
				}
			}
		})
	}
}

// An operator can shorten a list that is too long for limiters.
func TestUnblockOfTooManyBlocks(t *testing.T) {
	l, ctx := New(registered(t, listBlocked, lasting[listBlocked], engine.MaxSettings+1)), t.Context()
	if err := l.Ping(ctx); err != nil || l.settings.current.Load() != nil {
		t.Errorf("error %v, in force %v", err, l.settings.current.Load())
	}
	if err := l.Unblock(ctx, Request{Rule: Rule{Name: "r"}, Key: "7"}); err != nil {
		t.Error(err)
	}
	if in := l.settings.current.Load(); in == nil || len(in.blocks) != engine.MaxSettings || l.Overrides().Err() != nil {
		t.Errorf("in force %v, error %v", in, l.Overrides().Err())
	}
}

// Blocked lists the blocks that have not ended, in order.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := New(memory.New(nil, 100, 1<<20)), WithUserID(context.Background(), "eve")
		of := func(rule, key string) Request { return Request{Rule: Rule{Name: rule}, Key: key} }
		for _, block := range []struct {
			d time.Duration
			r Request
		}{{time.Hour, of("mail", "a\n{b")}, {time.Hour, of("login", "")}, {time.Hour, of("login", "ann")}, {time.Second, of("login", "bob")}} {
			if err := l.Block(ctx, block.d, block.r); err != nil {
				t.Fatal(err)
			}
		}
		until := time.Now().Add(time.Hour).UTC()
		time.Sleep(time.Minute)
		want := []Blocked{{"login", "", until, "eve"}, {"login", "ann", until, "eve"}, {"mail", "a%0A%7Bb", until, "eve"}}
		if got, err := l.Blocked(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, error %v; want %+v", got, err, want)
		}
	})
}
