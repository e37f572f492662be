package redisstore

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A program that makes a store and a limiter for each request is told so, once.
func TestLimiterForEachRequest(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	var log bytes.Buffer
	rule := ratelimit.Rule{Name: "x", Limit: 1 << 30, Per: time.Minute, Algorithm: ratelimit.FixedWindow}
	for i := range 250 {
		l := ratelimit.New(New(client, WithTimeout(time.Minute)), ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: "a"}); err != nil {
			t.Fatal(err)
		}
		if told := bytes.Contains(log.Bytes(), []byte("one limiter")); told != (i >= 100) {
			t.Fatalf("after %d limiters the log is %q", i+1, log.String())
		}
	}
	if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines are logged, want 1: %s", n, log.Bytes())
	}
}
