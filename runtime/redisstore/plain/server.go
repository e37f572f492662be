package plain

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// run sends commands to a server, in a pipeline or in a transaction.
type run func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

// guard tries once, unless the server of a subject could not be reached a moment ago. The try goes on if ctx ends, because without its reply
// nobody could give the charge back. A ring would spread the commands of a transaction over its shards, so guard uses the client of the shard.
func (s *store) guard(ctx context.Context, subject string, try func(context.Context, redis.UniversalClient) error) error {
	ctx = context.WithoutCancel(ctx)
	server, err := s.servers.Of(ctx, subject)
	if err != nil {
		return err
	}
	b := s.servers.Breaker(server, server)
	cluster, isCluster := s.servers.Client.(*redis.ClusterClient)
	if isCluster {
		server = cluster // its client follows slots that move
	}
	err = b.Try(ctx, func() error { return try(ctx, server) })
	if isCluster && !breaker.Reached(err) {
		cluster.ReloadState(ctx) // another master may have taken over
	}
	return probe.Reason(s.servers.Client, err)
}

// ask sends commands for all counters, and reads the replies into them. It returns the server's time just before the commands.
func (s *store) ask(ctx context.Context, run run, counters []*counter, what func(*counter, context.Context, redis.Pipeliner)) (int64, error) {
	var clock *redis.TimeCmd
	commands, err := run(ctx, func(p redis.Pipeliner) error {
		clock = p.Time(ctx)
		for _, n := range counters {
			what(n, ctx, p)
		}
		return nil
	})
	if redis.HasErrorPrefix(err, "EXECABORT") {
		err = notRun{why(commands, err)}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, lua.Fault(err)
	}
	for _, c := range commands { // err may be the redis.Nil of a window that already exists, which hides later errors
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return 0, lua.Fault(err)
		}
	}
	now := clock.Val().UnixMicro()
	s.offset.Store(now - time.Now().UnixMicro())
	for _, n := range counters {
		if err := n.read(now); err != nil {
			return 0, err
		}
	}
	return now, nil
}

// notRun is the error of a transaction of which the server ran nothing.
type notRun struct{ error }

// Unwrap returns the server's error.
func (e notRun) Unwrap() error { return e.error }

// why returns why the server did not queue a command of a transaction, such as a MOVED or an OOM. If no command says so, it returns err.
func why(commands []redis.Cmder, err error) error {
	for _, c := range commands {
		if err := c.Err(); err != nil && !redis.HasErrorPrefix(err, "EXECABORT") {
			return err
		}
	}
	return err
}

// now estimates the server's time.
func (s *store) now() int64 { return time.Now().UnixMicro() + s.offset.Load() }
