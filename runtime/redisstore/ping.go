package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Ping implements engine.Backend. It tries the commands on the single server, on each master of a cluster, or on each shard of a ring. It always
// tries SET, too, which shows whether the server accepts data.
func (s *store) Ping(ctx context.Context, prefix string, rules []*engine.Rule) error {
	needed := commandsOf(rules)
	return s.PingEach(ctx, max(s.Timeout, time.Second), prefix, func(ctx context.Context, server redis.UniversalClient, key string) error {
		wanted := slices.DeleteFunc(tries(key), func(try []any) bool { return try[0] != "SET" && !slices.Contains(needed, try[0].(string)) })
		if err := probe.Try(ctx, server, wanted, needed); err != nil {
			return err
		}
		s.lookAtMemory(ctx, server)
		return nil
	})
}

// tries returns commands that try what decisions need, and change only the given key. It first sets the key to a string, so that the commands
// for lists, sets and hashes fail on it and change nothing.
func tries(key string) [][]any {
	const unknown = "0000000000000000000000000000000000000000" // a server that permits EVALSHA replies that it does not know this script
	const version = "return redis.REDIS_VERSION or redis.error_reply('ERR unknown command: Redis 7 has it')"
	return [][]any{
		{"EVALSHA", unknown, 1, key}, {"EVAL", version, 1, key},
		{"SET", key, "", "PX", probe.Life}, {"GET", key}, {"GETRANGE", key, 0, 0}, {"SETRANGE", key, 0, ""}, {"STRLEN", key},
		{"HMGET", key, ""}, {"HSCAN", key, 0}, {"LINDEX", key, 0}, {"LLEN", key}, {"LPOP", key}, {"LRANGE", key, 0, 0}, {"LREM", key, 0, ""},
		{"LSET", key, 0, ""}, {"LTRIM", key, 0, -1}, {"MGET", key}, {"RPUSH", key, ""}, {"ZADD", key, "XX", 0, ""}, {"ZCARD", key},
		{"ZCOUNT", key, 0, 0}, {"ZRANGE", key, 0, 0}, {"ZRANGEBYSCORE", key, 0, 0}, {"ZREM", key, ""}, {"ZREMRANGEBYRANK", key, 0, 0},
		{"ZREMRANGEBYSCORE", key, 0, 0}, {"ZSCORE", key, ""}, {"TIME"},
		{"PEXPIREAT", key, time.Now().UnixMilli() + probe.Life}, {"DEL", key},
	}
}

// lookAtMemory tells the operator, once, if a server removes counts when its memory is full.
func (s *store) lookAtMemory(ctx context.Context, server redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := probe.Evicts(ctx, server); err != nil {
		s.Tell("the server removes counts when its memory is full; callers then have their whole limits again", err)
	}
}
