package plain

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// pingTimeout bounds a Ping whose context has no deadline.
const pingTimeout = 5 * time.Second

// Ping implements backend.Store. It tries the commands that decisions need on each server. All rules need the same commands.
func (s *store) Ping(ctx context.Context, prefix string, _ []*engine.Rule) error {
	return s.servers.PingEach(ctx, pingTimeout, prefix, func(ctx context.Context, server redis.UniversalClient, key string) error {
		return probe.Try(ctx, server, tries(key), nil)
	})
}

// tries returns the commands of this package, on a key that no count has. Even an EXEC that is denied ends its transaction.
func tries(key string) [][]any {
	return [][]any{
		{"TIME"}, {"SET", key, zero, "NX", "PX", probe.Life}, {"BITFIELD", key, "GET", integer, 0}, {"BITFIELD_RO", key, "GET", integer, 0},
		{"STRLEN", key}, {"PEXPIRETIME", key}, {"WATCH", key}, {"UNWATCH"}, {"MULTI"}, {"EXEC"},
		{"HMGET", key, ""}, {"HSCAN", key, 0}, {"MGET", key}, {"ZRANGEBYSCORE", key, 0, 0}, {"DEL", key},
	}
}
