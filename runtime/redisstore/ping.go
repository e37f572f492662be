package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// probeLife is how long the key that Ping writes lives where it may not remove it.
const probeLife = time.Second

// Ping implements engine.Pinger. It asks each master of a cluster and each shard of a ring, and tries the commands that decisions need:
// on a cluster at one master.
func (s *store) Ping(ctx context.Context, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.timeout, time.Second))
	defer cancel()
	probe := key.State(prefix, "", "", "ping")
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		if err := c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return reachable(c, c.Time(ctx).Err()) }); err != nil {
			return err
		}
	case *redis.Ring:
		return c.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error { return ping(ctx, c, probe) })
	}
	return ping(ctx, s.client, probe)
}

// ping tries the commands on one key.
func ping(ctx context.Context, c redis.UniversalClient, probe string) error {
	args := []any{1, probe, time.Now().Add(probeLife).UnixMilli()}
	// A server that does not know the script of this hash and says so permits EVALSHA.
	known := c.Do(ctx, append([]any{"evalsha", lua.PingSHA}, args...)...)
	if err := known.Err(); err != nil && !strings.HasPrefix(err.Error(), "NOSCRIPT ") {
		return reachable(c, err)
	}
	reply, err := c.Do(ctx, append([]any{"eval", lua.Ping}, args...)...).StringSlice()
	if err != nil {
		return reachable(c, err)
	}
	return readPing(reply)
}

// readPing says what is wrong with a server by its reply to ping.lua.
func readPing(reply []string) error {
	if len(reply) == 0 || reply[0] == "" {
		return errors.New("the server is older than Redis 7: upgrade it to Redis 7 or Valkey")
	}
	var denied []string
	var broken error
	for i := 1; i+1 < len(reply); i += 2 {
		command, fault := reply[i], reply[i+1]
		switch {
		case isDenial(fault):
			denied = append(denied, command)
		case strings.HasPrefix(fault, "READONLY "):
			return reachable(nil, errors.New(fault))
		case broken == nil:
			broken = fmt.Errorf("the server cannot run %s: %s", command, fault)
		}
	}
	if len(denied) == 0 {
		return broken
	}
	return fmt.Errorf("the user may not run %s on keys of this prefix: permit it, as \"ratelimitctl acl\" prints", strings.Join(denied, ", "))
}

// isDenial reports whether a fault in a script is a missing permission: its words differ between versions.
func isDenial(fault string) bool {
	return strings.Contains(fault, "NOPERM") || strings.Contains(fault, "ACL failure") || strings.Contains(fault, "can't run this command") ||
		strings.Contains(fault, "can't access")
}

// reachable says in a sentence why a server did not answer, and what to do.
func reachable(client any, err error) error {
	if err == nil {
		return nil
	}
	has := func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) }
	switch {
	case has("WRONGPASS ") && user(client) != "":
		return fmt.Errorf("the server does not know the user %q, or the password is wrong: check both in the client's options and by ACL LIST: %w", user(client), err)
	case has("WRONGPASS "):
		return fmt.Errorf("the password is wrong: check it in the client's options: %w", err)
	case has("NOAUTH "):
		return fmt.Errorf("the server wants a password: set it in the client's options: %w", err)
	case has("NOPERM "):
		return fmt.Errorf("the user may not run what decisions need: permit it, as \"ratelimitctl acl\" prints: %w", err)
	case has("READONLY "):
		return fmt.Errorf("the server is a read-only replica: connect to its master: %w", err)
	case has("LOADING "):
		return fmt.Errorf("the server is still loading its data: wait until it has: %w", err)
	}
	if !breaker.Reached(err) {
		return fmt.Errorf("the server cannot be reached: check the address and whether it runs: %w", err)
	}
	return err
}

// user returns the name that a client signs in with, or nothing.
func user(client any) string {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Username
	case *redis.ClusterClient:
		return c.Options().Username
	}
	return ""
}
