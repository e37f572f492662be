package redisstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Ping implements backend.Store. It tries the commands on the single server, on each master of a cluster, or on each shard of a ring. It always
// tries SET, too, which shows whether the server accepts data.
func (s *store) Ping(ctx context.Context, prefix string, rules []*engine.Rule) error {
	needed := commandsOf(rules)
	return s.servers.PingEach(ctx, max(s.servers.Timeout, time.Second), prefix, func(ctx context.Context, server redis.UniversalClient, key string) error {
		wanted := slices.DeleteFunc(tries(key), func(try []any) bool { return try[0] != "SET" && !slices.Contains(needed, try[0].(string)) })
		err := probe.Try(ctx, server, wanted, needed)
		if m, ok := errors.AsType[*probe.Missing](err); ok {
			m.Commands = slices.DeleteFunc(m.Commands, func(name string) bool { return s.isSpared(ctx, server, name) })
			if len(m.Commands) == 0 {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		s.lookAtMemory(ctx, server)
		return nil
	})
}

// isSpared reports whether a server that lacks a command can decide all the same. Without HSCAN only the settings and the rules in use are
// unknown. Where functions run, EVALSHA is not needed.
func (s *store) isSpared(ctx context.Context, server redis.UniversalClient, name string) bool {
	switch name {
	case "HSCAN":
		s.servers.Tell("the server lacks HSCAN; many overrides, blocks and pauses cannot be read", errNoHSCAN)
		return true
	case "EVALSHA":
		return s.functions && !probe.IsUnknown(server.FCall(ctx, "ratelimit_unknown", nil).Err())
	}
	return false
}

var errNoHSCAN = errors.New("permit it again where the server's configuration has rename-command")

// tries returns commands that try what decisions need, and change only the given key. It first sets the key to a string, so that the commands
// for lists, sets and hashes fail on it and change nothing.
func tries(key string) [][]any {
	const unknown = "0000000000000000000000000000000000000000" // a server that permits EVALSHA replies that it does not know this script
	const script = "if not pcall(function() return struct.pack end) then return redis.error_reply('" + probe.NoStruct + "') end " +
		"return redis.REDIS_VERSION or redis.error_reply('" + probe.Old + "')"
	return [][]any{
		{"EVALSHA", unknown, 1, key}, {"EVAL", script, 1, key},
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
		s.servers.Tell("the server removes counts when its memory is full; callers then have their whole limits again", err)
	}
}
