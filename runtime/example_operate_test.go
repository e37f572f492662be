package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// A refusal by Wait, or by a generated wrapper, is an error that says when to come back.
func ExampleTooManyRequestsError() {
	limiter := ratelimit.New(noon())
	rule := ratelimit.Rule{Name: "codes", Limit: 1, Per: time.Minute, Message: "One code a minute."}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	for range 2 {
		_, err := limiter.Wait(ctx, ratelimit.Request{Rule: rule, Key: "+4915550100"})
		var refusal *ratelimit.TooManyRequestsError
		switch {
		case errors.As(err, &refusal):
			fmt.Println(refusal.Message, refusal.RetryAfter)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("sent")
		}
	}
	// Output:
	// sent
	// One code a minute. 1m0s
}

func ExampleLimiter_Block() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 10, Per: time.Minute}, Key: "mallory"}
	if err := limiter.Block(ctx, time.Hour, login); err != nil {
		fmt.Println(err)
	}
	decision, _ := limiter.Allow(ctx, login)
	fmt.Println(decision.Allowed, decision.Source)
	blocked, err := limiter.Blocked(ctx)
	fmt.Println(len(blocked), blocked[0].Rule, blocked[0].Key, err)

	if err := limiter.Unblock(ctx, login); err != nil {
		fmt.Println(err)
	}
	decision, _ = limiter.Allow(ctx, login)
	fmt.Println(decision.Allowed, decision.Source)
	// Output:
	// false block
	// 1 login mallory <nil>
	// true store
}

// A program that starts asks whether the limiter can decide.
func ExampleLimiter_Ping() {
	store := limittest.NewOutage(limittest.NewClock()) // in a program redisstore.New(client)
	limiter := ratelimit.New(store)
	fmt.Println(limiter.Ping(context.Background()))
	store.Begin(errors.New("connection refused"))
	fmt.Println(limiter.Ping(context.Background()))
	// Output:
	// <nil>
	// store: connection refused
}

// While the store fails, each of four processes admits a quarter of the limit.
func ExampleFailLocalShare() {
	store := limittest.NewOutage(limittest.NewClock())
	limiter := ratelimit.New(store, ratelimit.WithFailurePolicy(ratelimit.FailLocalShare(4)), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	store.Begin(errors.New("connection refused"))

	rule := ratelimit.Rule{Name: "search", Limit: 8, Per: time.Minute}
	for range 3 {
		decision, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "ann"})
		fmt.Println(decision.Allowed, decision.Source, err)
	}
	// Output:
	// true policy <nil>
	// true policy <nil>
	// false policy <nil>
}

// The observer logs refusals. Keys are hashed, unless WithPlainKeys says otherwise.
func ExampleSlogObserver() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	limiter := ratelimit.New(noon(), ratelimit.WithObserver(ratelimit.SlogObserver(logger, slog.LevelInfo, ratelimit.WithPlainKeys())))
	rule := ratelimit.Rule{Name: "login", Limit: 1, Per: time.Minute}
	for range 2 {
		_, _ = limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "ann"})
	}
	// Output:
	// level=INFO msg="rate limit refused" retry_after=1m0s source=store rule.name=login rule.window=1m rule.key=ann rule.mode=enforce rule.limit=1 rule.cost=1 rule.retry_after=1m0s
}

// Keys in the store and errors show a hash of each subject.
func ExampleWithSubjectHash() {
	secret := []byte("0123456789abcdef0123456789abcdef") // a program gets it from where its other secrets are
	limiter := ratelimit.New(noon(), ratelimit.WithSubjectHash(secret))
	rule := ratelimit.Rule{Name: "codes", Limit: 0, Per: time.Minute}
	decision, _ := limiter.Allow(context.Background(), ratelimit.Request{Rule: rule, Key: "+4915550100"})
	fmt.Println(decision.Violations[0])
	// Output:
	// codes: 0 per minute for "PVDFpvB4L_e6nkm7EvlbtQ"
}

// An override in the store applies to all limiters with the same prefix.
func ExampleOverrides_Set() {
	ctx, store := context.Background(), noon()
	ours, theirs := ratelimit.New(store), ratelimit.New(store)
	ctx = ratelimit.WithActor(ctx, "ann", "too many crawlers")
	err := errors.Join(
		ours.Overrides().Set(ctx, "search", ratelimit.Override{Limit: new(int64(2))}),
		ours.Overrides().Set(ctx, "search", ratelimit.Override{Key: "tenant7", Factor: 3}), // for one key, three times as much
	)
	if err != nil {
		fmt.Println(err)
	}
	all, err := theirs.Overrides().List(ctx)
	for _, s := range all {
		s.At = time.Time{}
		text, _ := json.Marshal(s)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"rule":"search","limit":2,"by":"ann","reason":"too many crawlers"} <nil>
	// {"rule":"search","key":"tenant7","factor":3,"by":"ann","reason":"too many crawlers"} <nil>
}

// SetNew sets an override only if there is none yet.
func ExampleOverrides_SetNew() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	for _, limit := range []int64{5, 9} {
		fmt.Println(limiter.Overrides().SetNew(ctx, "search", ratelimit.Override{Limit: &limit}))
	}
	all, err := limiter.Overrides().List(ctx)
	fmt.Println(*all[0].Limit, err)
	// Output:
	// true <nil>
	// false <nil>
	// 5 <nil>
}

func ExampleRule_Boundaries() {
	rule := ratelimit.Rule{Name: "day", Limit: 10, Cron: "@daily", TZ: "Europe/Berlin"}
	ends, err := rule.Boundaries(time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC), 2)
	fmt.Println(ends, err) // the second day has 23 hours
	// Output:
	// [2026-03-29 00:00:00 +0100 CET 2026-03-30 00:00:00 +0200 CEST] <nil>
}

func ExampleRule_Validate() {
	rule := ratelimit.Rule{Name: "search", Algorithm: ratelimit.FixedWindow, Limit: 10, Per: time.Minute, Burst: 20}
	fmt.Println(rule.Validate())
	// Output:
	// rule "search": burst: found a fixed-window; expected a token-bucket
}
