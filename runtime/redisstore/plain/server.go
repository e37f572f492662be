package plain

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// run is how commands get to a server: in a pipeline, or in a transaction.
type run func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

// guard tries once, unless the server of a subject could not be reached a moment ago. A try goes on when ctx ends, since
// nobody could give back a charge without its reply. A ring by itself would spread the commands of a transaction, so they go to the shard.
func (s *store) guard(ctx context.Context, subject string, try func(context.Context, redis.UniversalClient) error) error {
	ctx = context.WithoutCancel(ctx)
	server, err := s.Of(ctx, subject)
	if err != nil {
		return err
	}
	b, ok := s.breakers.Load(server)
	if !ok {
		b, _ = s.breakers.LoadOrStore(server, breaker.New())
	}
	cluster, isCluster := s.Client.(*redis.ClusterClient)
	if isCluster {
		server = cluster // which follows slots that move
	}
	unsent := b.(*breaker.Breaker).Try(func() error {
		if err = try(ctx, server); errors.Is(err, errAgain) {
			return nil // the server is well
		}
		return err
	})
	if isCluster && !breaker.Reached(unsent) {
		cluster.ReloadState(ctx) // another master may be in its place
	}
	if err == nil {
		err = unsent
	}
	return err
}

// ask sends commands for all counters and takes in the replies. It returns the server's time just before the commands.
func (s *store) ask(ctx context.Context, run run, counters []*counter, what func(*counter, context.Context, redis.Pipeliner)) (int64, error) {
	var clock *redis.TimeCmd
	commands, err := run(ctx, func(p redis.Pipeliner) error {
		clock = p.Time(ctx)
		for _, n := range counters {
			what(n, ctx, p)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, lua.Fault(err)
	}
	for _, c := range commands { // a window that exists already is a redis.Nil, which hides later errors
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return 0, lua.Fault(err)
		}
	}
	now := clock.Val().UnixMicro()
	s.ahead.Store(now - time.Now().UnixMicro())
	for _, n := range counters {
		if err := n.read(now); err != nil {
			return 0, err
		}
	}
	return now, nil
}

// now returns the server's time as far as it is known here.
func (s *store) now() int64 { return time.Now().UnixMicro() + s.ahead.Load() }
