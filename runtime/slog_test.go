package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
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
