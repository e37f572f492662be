package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Fleet returns what the processes of a prefix know in common. Limiters of one prefix get the same one, as long as one of them is in use.
func (s *Servers) Fleet(prefix string) *fleet.Fleet {
	s.fleetsLock.Lock()
	defer s.fleetsLock.Unlock()
	if f := s.fleets[prefix].Value(); f != nil {
		return f
	}
	f := fleet.New(server{s, prefix}, prefix, s.Counts)
	s.fleets[prefix] = weak.Make(f)
	return f
}

// server is the one that has the keys of a fleet.
type server struct {
	*Servers
	prefix string
}

// ask calls send, unless the server is known to be away and still is.
func (s server) ask(ctx context.Context, send func(node redis.UniversalClient) error) error {
	node, err := s.Of(ctx, fleet.SlotOf(s.prefix))
	if err == nil {
		err = s.Breaker(node, node).Ask(ctx, func() error { return send(node) })
	}
	if cluster, ok := s.Client.(*redis.ClusterClient); ok && !breaker.Reached(err) {
		cluster.ReloadState(ctx) // another master may have taken over
	}
	return err
}

// Do implements fleet.Server.
func (s server) Do(ctx context.Context, commands ...fleet.Command) (all []any, err error) {
	err = s.ask(ctx, func(redis.UniversalClient) (err error) {
		all, err = results(s.toMaster(ctx, commands))
		return err
	})
	return all, probe.Reason(s.Client, err)
}

// toMaster sends commands to the master that has their keys. A cluster's client that may read from replicas sends them to the master if one of
// them may write, so toMaster adds one that removes nothing. A connection to a server that has become a replica would still read there. So the
// commands are a transaction, which the replica refuses as a whole. While a slot moves, its keys may be on two masters, and no transaction works.
func (s server) toMaster(ctx context.Context, commands []fleet.Command) ([]redis.Cmder, error) {
	cluster, ok := s.Client.(*redis.ClusterClient)
	if !ok || !cluster.Options().ReadOnly {
		return s.Client.Pipelined(ctx, appendTo(ctx, commands))
	}
	add := appendTo(ctx, append([]fleet.Command{{"HDEL", fleet.ProcessesOf(s.prefix), ""}}, commands...))
	replies, err := cluster.TxPipelined(ctx, add)
	if redis.HasErrorPrefix(err, "TRYAGAIN") { // none of the commands was run
		replies, err = cluster.Pipelined(ctx, add)
	}
	return replies[min(1, len(replies)):], err
}

func appendTo(ctx context.Context, commands []fleet.Command) func(redis.Pipeliner) error {
	return func(p redis.Pipeliner) error {
		for _, args := range commands {
			p.Do(ctx, args...)
		}
		return nil
	}
}

func results(replies []redis.Cmder, err error) ([]any, error) {
	all := make([]any, len(replies))
	for i, reply := range replies {
		var failed error
		if all[i], failed = reply.(*redis.Cmd).Result(); failed != nil && failed != redis.Nil {
			return nil, failed
		}
	}
	if err == redis.Nil {
		err = nil
	}
	return all, err
}

// Run implements fleet.Server.
func (s server) Run(ctx context.Context, script string, keys []string, args ...any) (reply any, ok bool, err error) {
	if !s.Scripts {
		return nil, false, nil
	}
	command := []any{"evalsha", redis.NewScript(script).Hash(), len(keys)}
	for _, key := range keys {
		command = append(command, key)
	}
	reply, err = s.once(ctx, append(command, args...))
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		command[0], command[1] = "eval", script
		reply, err = s.once(ctx, append(command, args...))
	}
	if redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") {
		return nil, false, nil // a program of package plain and the tool may share a server that forbids scripts
	}
	return reply, true, s.permitted(err)
}

// permitted is [probe.Reason] for what changes settings.
func (s server) permitted(err error) error {
	if redis.HasErrorPrefix(err, "NOPERM") || err != nil && strings.Contains(err.Error(), "The user executing the script can't run") {
		return fmt.Errorf("the user may not change overrides, blocks and pauses: permit it, as \"ratelimitctl acl -settings\" prints: %w", err)
	}
	return probe.Reason(s.Client, err)
}

// once sends a command at most once.
func (s server) once(ctx context.Context, command []any) (any, error) {
	cmd := Cmd{Cmd: redis.NewCmd(ctx, command...)}
	err := s.ask(ctx, func(redis.UniversalClient) error { return s.Client.Process(ctx, cmd) })
	return cmd.Val(), err
}

// Try implements fleet.Server.
func (s server) Try(ctx context.Context, key string, do func(fleet.Do) ([]fleet.Command, error)) (bool, error) {
	var own error
	err := s.ask(ctx, func(redis.UniversalClient) error {
		return s.Client.Watch(ctx, func(tx *redis.Tx) error {
			var commands []fleet.Command
			commands, own = do(func(ctx context.Context, commands ...fleet.Command) ([]any, error) {
				all, err := results(tx.Pipelined(ctx, appendTo(ctx, commands)))
				return all, probe.Reason(s.Client, err)
			})
			if own != nil || len(commands) == 0 {
				return own
			}
			_, err := tx.TxPipelined(ctx, appendTo(ctx, commands))
			return err
		}, key)
	})
	switch {
	case own != nil:
		return false, own
	case errors.Is(err, redis.TxFailedErr):
		return false, nil
	}
	return err == nil, s.permitted(err)
}

// Time implements fleet.Server.
func (s server) Time(ctx context.Context) (at time.Time, err error) {
	err = s.ask(ctx, func(node redis.UniversalClient) (err error) {
		at, err = node.Time(ctx).Result()
		return err
	})
	return at, probe.Reason(s.Client, err)
}

// Renew implements fleet.Server.
func (s server) Renew(ctx context.Context, all bool) {
	if s.Servers.Renew != nil {
		s.Servers.Renew(ctx, s.prefix, all)
	}
}

// IsClosed implements fleet.Server.
func (server) IsClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }
