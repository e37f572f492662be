package faults

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// Many programs know miniredis as a fake for tests. Its Lua lacks what the script needs, and Ping says what to use instead.
func TestPingOfMiniredis(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	l := ratelimit.New(redisstore.New(client), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	if err := l.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "miniredis does: in tests use package memstore, or a real server") {
		t.Errorf("Ping says %v", err)
	}
}
