package plain

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// pingTimeout bounds a Ping whose context has no end.
const pingTimeout = 5 * time.Second

// Ping implements engine.Pinger. It tries the commands that decisions need at each server. All rules need the same ones.
func (s *store) Ping(ctx context.Context, prefix string, _ []*engine.Rule) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return probe.Each(ctx, s.client, prefix, ping)
}

// tries are the commands of this package, on a key of their own. An EXEC that is denied ends its transaction all the same.
func tries(key string) [][]any {
	return [][]any{
		{"time"}, {"set", key, zero, "nx", "px", probe.Life}, {"bitfield", key, "get", integer, 0}, {"bitfield_ro", key, "get", integer, 0},
		{"strlen", key}, {"pexpiretime", key}, {"watch", key}, {"unwatch"}, {"multi"}, {"exec"}, {"del", key},
	}
}

func ping(ctx context.Context, server redis.UniversalClient, key string) error {
	commands, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, try := range tries(key) {
			p.Do(ctx, try...)
		}
		return nil
	})
	var denied []string
	for _, c := range commands {
		switch err := c.Err(); {
		case err == nil || errors.Is(err, redis.Nil):
		case strings.Contains(err.Error(), "NOPERM "): // of EXEC behind other words
			denied = append(denied, strings.ToUpper(c.Name()))
		case strings.HasPrefix(err.Error(), "ERR unknown command"):
			return errors.New("the server is older than Redis 7: upgrade it to Redis 7 or Valkey")
		}
	}
	if len(denied) > 0 {
		return probe.Denied(denied)
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return probe.Reason(server, err)
}
