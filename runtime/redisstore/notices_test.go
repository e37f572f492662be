package redisstore

import (
	"bytes"
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A notice goes to the log of the first limiter that uses the store, not to limiters that were only made. The store keeps no limiter for that.
func TestNoticesOfASharedStore(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	shared := New(client, WithTimeout(time.Minute))
	var logs [3]bytes.Buffer
	var limiters [3]*ratelimit.Limiter
	for i := range limiters {
		limiters[i] = ratelimit.New(shared, ratelimit.WithLogger(slog.New(slog.NewTextHandler(&logs[i], nil))), ratelimit.WithPrefix("other"))
	}
	q := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow}, Key: "k"}
	allow := func(i int) {
		if _, err := limiters[i].Allow(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	allow(1)
	if err := client.SetRange(t.Context(), "other:r:{k}:fixed:1h", 30, "damage").Err(); err != nil {
		t.Fatal(err)
	}
	allow(2)
	for i, want := range []int{0, 1, 0} {
		if n := bytes.Count(logs[i].Bytes(), []byte("counts were damaged")); n != want {
			t.Errorf("limiter %d logs %d notices, want %d: %s", i, n, want, logs[i].Bytes())
		}
	}
	dropped := weak.Make(limiters[0])
	clear(limiters[:])
	runtime.GC()
	if dropped.Value() != nil {
		t.Error("the store keeps a limiter that is not used")
	}
}
