package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// logOf returns the log of the decisions that decide makes.
func logOf(options []ratelimit.SlogOption, decide func(*ratelimit.Limiter)) string {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	decide(ratelimit.New(memstore.New(), ratelimit.WithObserver(ratelimit.SlogObserver(logger, slog.LevelInfo, options...))))
	return log.String()
}

// The log shows refusals, and different hashes for different keys, but no key.
func TestSlogObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := func(l *ratelimit.Limiter) {
			for _, key := range []string{"+4915112345678", "bob"} {
				q := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: time.Minute}, Key: key}
				_, _ = l.Allow(context.Background(), q)
				_, _ = l.Allow(context.Background(), q)
			}
		}
		lines := strings.Split(strings.TrimSpace(logOf(nil, calls)), "\n")
		if len(lines) != 2 || strings.Contains(lines[0], "4915112345678") || !strings.Contains(lines[0], "rate limit refused") ||
			!strings.Contains(lines[0], "rule.name=login") || !strings.Contains(lines[0], "retry_after=1m0s") {
			t.Fatalf("got %q", lines)
		}
		key := func(line string) string {
			_, rest, _ := strings.Cut(line, "rule.key=")
			hash, _, _ := strings.Cut(rest, " ")
			return hash
		}
		if key(lines[0]) == key(lines[1]) || len(key(lines[0])) != 22 {
			t.Errorf("the keys are %q and %q", key(lines[0]), key(lines[1]))
		}
		if log := logOf([]ratelimit.SlogOption{ratelimit.WithPlainKeys()}, calls); !strings.Contains(log, "rule.key=+4915112345678") {
			t.Errorf("got %s", log)
		}
	})
}

// The log shows which rules refused to let a call grow, and no key.
func TestSlogObserverOfAdds(t *testing.T) {
	log := logOf(nil, func(l *ratelimit.Limiter) {
		rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "tokens", Limit: 10, Per: time.Minute}).WithCost()
		ctx, charge := ratelimit.WithCharge(t.Context())
		_ = wrap.Take(ctx, rules.On(l), rules, "+4915112345678")
		_, _ = charge.Add(ctx, 3), charge.Add(ctx, 7)
	})
	if strings.Count(log, "\n") != 1 || strings.Contains(log, "4915112345678") {
		t.Errorf("got %s", log)
	}
	for _, field := range []string{`msg="rate limit added"`, "method=p.T.M", "retry_after=", "rule.name=tokens", "rule.cost=4", "rule.cost_before=4", "err="} {
		if !strings.Contains(log, field) {
			t.Errorf("%s is missing: %s", field, log)
		}
	}
}

// The log of a change shows no key, and no Match that may be one.
func TestSlogObserverShowsNoMatch(t *testing.T) {
	block := func(l *ratelimit.Limiter) {
		for _, match := range []string{"+4915112345678*", "203.0.113.7/32"} {
			_ = l.Block(context.Background(), time.Hour, ratelimit.Request{Rule: ratelimit.Rule{Name: "login"}, Match: match})
		}
	}
	if log := logOf(nil, block); strings.Count(log, "change=block") != 2 || strings.Contains(log, "4915112345678") || strings.Contains(log, "203.0.113.7") {
		t.Errorf("got %s", log)
	}
	if log := logOf([]ratelimit.SlogOption{ratelimit.WithPlainKeys()}, block); !strings.Contains(log, "+4915112345678*") || !strings.Contains(log, "203.0.113.7/32") {
		t.Errorf("got %s", log)
	}
}

// The number of lines in a second is bounded, and events that were left out are counted.
func TestSlogObserverIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logOf([]ratelimit.SlogOption{ratelimit.WithLinesPerSecond(3)}, func(l *ratelimit.Limiter) {
			for range 2 {
				for range 100 {
					_, _ = l.Allow(context.Background(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Per: time.Minute}})
				}
				time.Sleep(time.Second)
			}
		})
		if n := strings.Count(log, "\n"); n != 6 || strings.Count(log, "left_out=97") != 1 {
			t.Errorf("%d lines:\n%s", n, log)
		}
	})
}

// Failures are logged, and admitted calls are not.
func TestSlogObserverOfFailures(t *testing.T) {
	var log bytes.Buffer
	observe := ratelimit.SlogObserver(slog.New(slog.NewTextHandler(&log, nil)), slog.LevelInfo)
	observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdmitted})
	observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdmitted, Source: ratelimit.SourcePolicy, Err: errors.New("gone\nforged")})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "source=policy") || !strings.Contains(got, `gone\nforged`) {
		t.Errorf("got %s", got)
	}
}

// Each rule that refuses has a field of its own.
func TestSlogObserverOfSeveralRules(t *testing.T) {
	log := logOf(nil, func(l *ratelimit.Limiter) {
		_, _ = l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "a", Per: time.Minute}},
			ratelimit.Request{Rule: ratelimit.PerHour(1)}, ratelimit.Request{Rule: ratelimit.Rule{Name: "c", Per: time.Minute}})
	})
	if !strings.Contains(log, " rule.name=a ") || !strings.Contains(log, " rule2.name=c ") || strings.Contains(log, "rule3") {
		t.Errorf("got %s", log)
	}
}

// No line of the log shows a key, whatever the error of an event is. WithPlainKeys shows what the error says.
func TestSlogObserverShowsNoKey(t *testing.T) {
	const secret = "+4915112345678"
	cause := fmt.Errorf("int(%s): invalid", secret)
	violation := ratelimit.Violation{Rule: "r", Window: "1m", Key: secret}
	rapid.Check(t, func(t *rapid.T) {
		err := rapid.SampledFrom([]error{
			&ratelimit.KeyError{Method: "p.T.M", Rule: "r", Expr: "int(phone)", Err: cause},
			&ratelimit.TooManyRequestsError{Message: secret + " has had them.", Violations: []ratelimit.Violation{violation}},
			&ratelimit.NeverAdmissibleError{Method: "p.T.M", Key: secret, Cost: 2, Limit: 1},
			&ratelimit.RuleError{Rule: "r", Argument: "settle", Reason: "found 1 cost"},
			&ratelimit.StoreError{Err: errors.New("connection refused")},
		}).Draw(t, "error")
		for range rapid.IntRange(0, 3).Draw(t, "wrapped") {
			err = rapid.SampledFrom([]error{
				&ratelimit.StoreError{Method: "p.T.M", Err: err}, fmt.Errorf("p.T.M: %w", err), errors.Join(context.Canceled, err),
				&ratelimit.KeyError{Method: "p.T.N", Err: err},
			}).Draw(t, "wrapping")
		}
		e := &ratelimit.Event{
			Kind: ratelimit.EventKind(rapid.IntRange(0, int(ratelimit.EventAdded)).Draw(t, "kind")), Method: "p.T.M", Err: err,
			Rules: []ratelimit.Outcome{{Rule: "r", Key: secret, Refused: true}},
		}
		for plain, options := range map[bool][]ratelimit.SlogOption{false: nil, true: {ratelimit.WithPlainKeys()}} {
			var log bytes.Buffer
			ratelimit.SlogObserver(slog.New(slog.NewJSONHandler(&log, nil)), slog.LevelInfo, options...)(context.Background(), e)
			if shows := strings.Contains(log.String(), secret); shows != plain || log.Len() == 0 {
				t.Errorf("plain %t: got %s", plain, log.String())
			}
		}
	})
}

// No call that fails puts its key into the log, the errors of its own making included.
func TestSlogObserverShowsNoKeyOfACallThatFails(t *testing.T) {
	const secret = "+4915112345678"
	rule := ratelimit.Rule{Name: "r", Key: "{phone}", Limit: 1, Per: time.Minute}
	rules := wrap.NewRules("p.T.M", rule)
	computed := wrap.NewRules("p.T.C", ratelimit.Rule{Key: "{phone}", Computed: true, Per: time.Minute})
	for name, fail := range map[string]func(*ratelimit.Limiter) error{
		"too long": func(l *ratelimit.Limiter) error {
			return wrap.Take(t.Context(), rules.On(l), rules, strings.Repeat(secret, 64<<10))
		},
		"a cost below 0": func(l *ratelimit.Limiter) error {
			return wrap.TakeCharges(t.Context(), rules.On(l), rules, wrap.Charge{Key: secret, Cost: -1})
		},
		"a cost above the limit": func(l *ratelimit.Limiter) error {
			return wrap.TakeCharges(t.Context(), rules.On(l), rules, wrap.Charge{Key: secret, Cost: 2})
		},
		"a limit below 0": func(l *ratelimit.Limiter) error {
			return wrap.TakeCharges(t.Context(), computed.On(l), computed, wrap.Charge{Key: secret, Cost: 1, Limit: -2})
		},
		"the expression": func(l *ratelimit.Limiter) error {
			return wrap.Failed(t.Context(), rules.On(l), rules.KeyError("int(phone)", errors.New("int: "+secret)))
		},
		"two members": func(l *ratelimit.Limiter) error {
			counts := ratelimit.Rule{Name: "d", Distinct: "{who}", Limit: 1, Per: time.Minute}
			_, err := l.Allow(t.Context(), ratelimit.Request{Rule: counts, Key: secret, Member: secret}, ratelimit.Request{Rule: counts, Key: secret, Member: "b"})
			return err
		},
	} {
		var err error
		log := logOf(nil, func(l *ratelimit.Limiter) { err = fail(l) })
		if err == nil || log == "" || strings.Contains(log, secret) {
			t.Errorf("%s: error %v, logged %s", name, err, log)
		}
	}
}
