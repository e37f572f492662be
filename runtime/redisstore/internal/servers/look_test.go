package servers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
)

// The error of several servers is one line, which names each.
func TestErrorsOfSeveralServers(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1", "b": "localhost:1"}, MaxRetries: -1, DialerRetries: 1, HeartbeatFrequency: time.Hour})
	defer ring.Close()
	err := New("test", ring).Each(t.Context(), func(ctx context.Context, _ string, do fleet.Do) error {
		_, err := do(ctx, fleet.Command{"PING"})
		return err
	})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "127.0.0.1:1: ") || !strings.Contains(err.Error(), "localhost:1: ") {
		t.Errorf("got %v", err)
	}
}
