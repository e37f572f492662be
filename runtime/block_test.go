package ratelimit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/memory"
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
		allowed(other, false, ann)
		if err := l.Unblock(ctx, ann); err != nil {
			t.Fatal(err)
		}
		allowed(l, true, ann)
		if l.machine().Fleet().InForce() != nil {
			t.Error("there is a table of nobody")
		}
		if err := l.Block(ctx, time.Minute, ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		allowed(l, true, ann)
		synctest.Wait()
		if l.machine().Fleet().InForce() != nil {
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

// A block, and a limit of 0, do not change what a quota says of a bucket besides its permits.
func TestQuotasOfABucketThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := New(memory.New(nil, 100, 1<<20)), context.Background()
		ann := Request{Rule: Rule{Name: "login", Algorithm: TokenBucket, Limit: 60, Per: time.Minute, Burst: 5}, Key: "ann"}
		peek := func(r Request) (Quota, QuotaPolicy) {
			t.Helper()
			d, err := l.Peek(ctx, r)
			if err != nil || len(d.Quotas) != 1 {
				t.Fatalf("got %+v, error %v; want one quota", d, err)
			}
			policy, _ := d.Quotas[0].Policy()
			return d.Quotas[0], policy
		}
		before, policy := peek(ann)
		if err := l.Block(ctx, 10*time.Second, ann); err != nil {
			t.Fatal(err)
		}
		blocked, same := peek(ann)
		if blocked.Limit != before.Limit || blocked.Remaining != 0 || blocked.Reset != 10*time.Second || same != policy {
			t.Errorf("got %+v, policy %+v; before the block %+v, %+v", blocked, same, before, policy)
		}
		nobody := ann
		nobody.Rule.Limit, nobody.Key = 0, "bob"
		if q, policy := peek(nobody); q.Limit != 0 || q.Remaining != 0 || q.Reset != 0 || policy.Quota != 0 || policy.Window != time.Minute {
			t.Errorf("with a limit of 0: got %+v, policy %+v", q, policy)
		}
	})
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
		want := []Blocked{{"login", "", until, "eve", "", ""}, {"login", "ann", until, "eve", "", ""}, {"mail", "a%0A%7Bb", until, "eve", "", ""}}
		if got, err := l.Blocked(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, error %v; want %+v", got, err, want)
		}
	})
}

// A console changes settings through a limiter of its own. The program's observers are told, as of its own changes.
func TestViewTellsObservers(t *testing.T) {
	told := 0
	l := New(memory.New(nil, 100, 1<<20), WithObserver(func(context.Context, *Event) { told++ }))
	q := Request{Rule: PerHour(1), Key: "k"}
	q.Rule.Name = "r"
	for i, limiter := range []*Limiter{(*Limiter)(l.machine().View()), l} {
		if err := limiter.Block(t.Context(), time.Hour, q); err != nil || told != i+1 {
			t.Errorf("limiter %d: told %d times, error %v", i, told, err)
		}
	}
}
