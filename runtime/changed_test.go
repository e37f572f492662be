package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Observers learn of each setting that the program changed, and of none that it did not change.
func TestObserversSeeChanges(t *testing.T) {
	var got []string
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind != ratelimit.EventChanged {
			t.Errorf("got %s", e.Kind)
		}
		for i := range e.Settings {
			if s := &e.Settings[i]; s.At.IsZero() || s.Until.IsZero() == (e.Change == "block") {
				t.Errorf("made at %s, ends at %s", s.At, s.Until)
			} else {
				s.At, s.Until = time.Time{}, time.Time{}
			}
		}
		text, err := json.Marshal(e.Settings)
		if err != nil {
			t.Error(err)
		}
		got = append(got, e.Change+" "+string(text))
	}))
	ctx, five := ratelimit.WithActor(t.Context(), "kim", "abuse"), int64(5)
	ann, bob := ratelimit.Request{Rule: ratelimit.Rule{Name: "login"}, Key: "ann"}, ratelimit.Request{Rule: ratelimit.Rule{Name: "login"}, Key: "bob"}
	o := l.Overrides()
	for _, err := range []error{
		o.Set(ctx, "login", ratelimit.Override{Limit: &five, Per: time.Minute}), l.Block(ctx, time.Hour, ann, bob),
		l.Unblock(t.Context(), bob), o.Clear(t.Context(), "login", ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second one changes nothing
		if _, err := o.SetNew(t.Context(), "login", ratelimit.Override{Key: "ann", Factor: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Block(ratelimit.WithActor(ctx, strings.Repeat("x", 1000), ""), time.Hour, ann); err == nil {
		t.Error("a long name of an actor is accepted")
	}
	if want := []string{
		`set [{"rule":"login","limit":5,"per":"1m","by":"kim","reason":"abuse"}]`,
		`block [{"rule":"login","key":"ann","by":"kim","reason":"abuse"},{"rule":"login","key":"bob","by":"kim","reason":"abuse"}]`,
		`unblock [{"rule":"login","key":"bob"}]`, `clear [{"rule":"login"}]`, `set [{"rule":"login","key":"ann","factor":2}]`,
	}; !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A change is logged with its actor. Its key is hashed, as that of a refusal.
func TestSlogObserverOfChanges(t *testing.T) {
	change := func(l *ratelimit.Limiter) {
		ann := ratelimit.Request{Rule: ratelimit.Rule{Name: "login"}, Key: "+4915112345678"}
		if err := l.Block(ratelimit.WithActor(t.Context(), "kim", "abuse"), time.Hour, ann, ann); err != nil {
			t.Error(err)
		}
	}
	log := logOf(nil, change)
	for _, part := range []string{"rate limit changed", "change=block", `\"rule\":\"login\"`, `\"by\":\"kim\"`, `\"reason\":\"abuse\"`, "settings=2"} {
		if !strings.Contains(log, part) {
			t.Errorf("%s is missing in %s", part, log)
		}
	}
	if plain := logOf([]ratelimit.SlogOption{ratelimit.WithPlainKeys()}, change); strings.Contains(log, "+49") || !strings.Contains(plain, `\"key\":\"+49`) {
		t.Errorf("got\n%s\n%s", log, plain)
	}
}

// An event of a call that was not decided names the rule that is wrong, or else all rules that would have been asked.
func TestFailuresHaveRules(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	var rules []string
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		if e.Kind == ratelimit.EventFailed {
			rules = append(rules, "")
			for _, o := range e.Rules {
				rules[len(rules)-1] += o.Rule + " "
			}
		}
	}))
	a, b := ratelimit.PerSecond(5), ratelimit.PerSecond(5)
	a.Name, b.Name, b.Key = "a", "b", "{k}"
	method := wrap.NewRules("p.T.M", a, b)
	ctx := t.Context()
	_ = wrap.Failed(ctx, method.On(l), method.KeyError("k", errors.New("k is missing")))
	_ = wrap.Take(ctx, method.On(l), method, "", "")
	_, _ = l.Allow(ctx, ratelimit.Request{Rule: a}, ratelimit.Request{Rule: b, Key: "k", Cost: 6})
	_, _ = l.Allow(ctx, ratelimit.Request{Rule: ratelimit.Rule{Name: "\xff\n", Limit: 1, Per: time.Second}})
	store.Begin(errors.New("away"))
	_ = wrap.Take(ctx, method.On(l), method, "", "k")
	if want := []string{"b ", "b ", "b ", `\xff\n `, "a b "}; !slices.Equal(rules, want) {
		t.Errorf("got %q, want %q", rules, want)
	}
}
