package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Ping implements engine.Pinger. It tries the commands at the single server, at each master of a cluster, or at each shard of a ring.
func (s *store) Ping(ctx context.Context, prefix string, rules []*engine.Rule) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.timeout, time.Second))
	defer cancel()
	commands := append(lua.Commands(rules...), "HSCAN") // for overrides and blocks
	return probe.Each(ctx, s.client, prefix, func(ctx context.Context, server redis.UniversalClient, key string) error {
		if err := ping(ctx, server, key, commands); err != nil {
			return err
		}
		s.lookAtMemory(ctx, server)
		return nil
	})
}

// ping tries the commands on one key.
func ping(ctx context.Context, c redis.UniversalClient, key string, commands []string) error {
	args := []any{1, key, time.Now().UnixMilli() + probe.Life, strings.Join(commands, " ")}
	// A server that does not know the script of this hash and says so permits EVALSHA.
	known := c.Do(ctx, append([]any{"evalsha", lua.PingSHA}, args...)...)
	if err := known.Err(); err != nil && !strings.HasPrefix(err.Error(), "NOSCRIPT ") {
		return probe.Reason(c, err)
	}
	reply, err := c.Do(ctx, append([]any{"eval", lua.Ping}, args...)...).StringSlice()
	if err != nil {
		return probe.Reason(c, err)
	}
	return readPing(reply, commands)
}

// readPing says what is wrong with a server by its reply to ping.lua, which was asked to try the commands.
func readPing(reply, commands []string) error {
	if len(reply) == 0 || reply[0] == "" {
		return errors.New("the server is older than Redis 7: upgrade it to Redis 7 or Valkey")
	}
	var denied []string
	var broken error
	for i := 1; i+1 < len(reply); i += 2 {
		command, fault := reply[i], reply[i+1]
		switch {
		case isDenial(fault):
			if slices.Contains(commands, command) {
				denied = append(denied, command)
			}
		case broken == nil:
			broken = fmt.Errorf("%s: %w", command, probe.Reason(nil, probe.Fault(fault)))
		}
	}
	if len(denied) == 0 {
		return broken
	}
	return probe.Denied(denied)
}

// isDenial reports whether a fault in a script is a missing permission: its words differ between versions.
func isDenial(fault string) bool {
	return strings.Contains(fault, "NOPERM") || strings.Contains(fault, "ACL failure") || strings.Contains(fault, "can't run this command") ||
		strings.Contains(fault, "can't access")
}

// lookAtMemory tells once if a server removes counts when its memory is full.
func (s *store) lookAtMemory(ctx context.Context, server redis.UniversalClient) {
	if s.evicts.Load() {
		return
	}
	if err := probe.Evicts(ctx, server); err != nil && !s.evicts.Swap(true) {
		s.tell("the server removes counts when its memory is full; callers then have their whole limits again", err)
	}
}
