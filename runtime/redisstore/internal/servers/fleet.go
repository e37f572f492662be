package servers

import (
	"context"
	"errors"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Fleet implements engine.Backend. Limiters of one prefix get the same one, as long as one of them is in use.
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

// Do implements fleet.Server.
func (s server) Do(ctx context.Context, commands ...fleet.Command) ([]any, error) {
	replies, err := s.Client.Pipelined(ctx, appendTo(ctx, commands))
	return s.results(replies, err)
}

func appendTo(ctx context.Context, commands []fleet.Command) func(redis.Pipeliner) error {
	return func(p redis.Pipeliner) error {
		for _, args := range commands {
			p.Do(ctx, args...)
		}
		return nil
	}
}

func (s server) results(replies []redis.Cmder, err error) ([]any, error) {
	all := make([]any, len(replies))
	for i, reply := range replies {
		var failed error
		if all[i], failed = reply.(*redis.Cmd).Result(); failed != nil && failed != redis.Nil {
			return nil, probe.Reason(s.Client, failed)
		}
	}
	if err == redis.Nil {
		err = nil
	}
	return all, probe.Reason(s.Client, err)
}

// Try implements fleet.Server.
func (s server) Try(ctx context.Context, key string, do func(fleet.Do) ([]fleet.Command, error)) (bool, error) {
	var own error
	err := s.Client.Watch(ctx, func(tx *redis.Tx) error {
		var commands []fleet.Command
		commands, own = do(func(ctx context.Context, commands ...fleet.Command) ([]any, error) {
			replies, err := tx.Pipelined(ctx, appendTo(ctx, commands))
			return s.results(replies, err)
		})
		if own != nil || len(commands) == 0 {
			return own
		}
		_, err := tx.TxPipelined(ctx, appendTo(ctx, commands))
		return err
	}, key)
	switch {
	case own != nil:
		return false, own
	case errors.Is(err, redis.TxFailedErr):
		return false, nil
	}
	return err == nil, probe.Reason(s.Client, err)
}

// Time implements fleet.Server. The slot of a fleet's keys is that of its prefix.
func (s server) Time(ctx context.Context, key string) (time.Time, error) {
	node, err := s.Of(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	at, err := node.Time(ctx).Result()
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
