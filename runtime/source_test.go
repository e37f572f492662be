package ratelimit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// The source of a refusal is the store, or this process if it remembers the refusal.
func TestSourceOfARefusal(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute), redisstore.WithRefusalMemory(time.Minute)))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}, Key: "k"}
	for _, want := range []ratelimit.Source{ratelimit.SourceStore, ratelimit.SourceStore, ratelimit.SourceMemory} {
		d, err := l.Allow(t.Context(), q)
		if err != nil || d.Source != want {
			t.Errorf("got %+v, error %v; want it from the %s", d, err, want)
		}
	}
	other := q
	other.Key = "other"
	if d, err := l.Allow(t.Context(), other); err != nil || d.Refund(t.Context()) != nil {
		t.Fatal(err)
	}
	if d, err := l.Allow(t.Context(), q); err != nil || d.Source != ratelimit.SourceMemory {
		t.Errorf("after a refund to another key: got %+v, error %v", d, err)
	}
	if _, err := l.Reset(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Allow(t.Context(), q); err != nil || !d.Allowed {
		t.Errorf("after a reset: %+v, error %v", d, err)
	}
}

// A remembered refusal is no sign that a lost store is back.
func TestRememberedRefusalWhileTheStoreIsLost(t *testing.T) {
	server, log := redistest.Start(t), new(bytes.Buffer)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DialerRetries: 1})
	defer client.Close()
	store := redisstore.New(client, redisstore.WithTimeout(time.Minute), redisstore.WithRefusalMemory(time.Minute))
	l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1, Per: time.Hour}, Key: "k"}
	for range 2 {
		if _, err := l.Allow(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	for range 3 {
		other := q
		other.Key = "other"
		if _, err := l.Allow(t.Context(), other); err == nil {
			t.Error("a call is decided without the server")
		}
		if d, err := l.Allow(t.Context(), q); err != nil || d.Source != ratelimit.SourceMemory {
			t.Errorf("got %+v, error %v", d, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines are logged, want one:\n%s", lines, log)
	}
}
