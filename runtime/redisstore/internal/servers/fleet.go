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

// ask calls send, unless the server is known to be away and still is.
func (s server) ask(ctx context.Context, send func(node redis.UniversalClient) error) error {
	node, err := s.Of(ctx, fleet.SlotOf(s.prefix))
	if err == nil {
		err = s.Breaker(node, node).Ask(ctx, func() error { return send(node) })
	}
	return probe.Reason(s.Client, err)
}

// Do implements fleet.Server.
func (s server) Do(ctx context.Context, commands ...fleet.Command) (all []any, err error) {
	err = s.ask(ctx, func(redis.UniversalClient) (err error) {
		all, err = results(s.Client.Pipelined(ctx, appendTo(ctx, commands)))
		return err
	})
	return all, err
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
	return err == nil, err
}

// Time implements fleet.Server.
func (s server) Time(ctx context.Context) (at time.Time, err error) {
	err = s.ask(ctx, func(node redis.UniversalClient) (err error) {
		at, err = node.Time(ctx).Result()
		return err
	})
	return at, err
}

// Renew implements fleet.Server.
func (s server) Renew(ctx context.Context, all bool) {
	if s.Servers.Renew != nil {
		s.Servers.Renew(ctx, s.prefix, all)
	}
}

// IsClosed implements fleet.Server.
func (server) IsClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }
