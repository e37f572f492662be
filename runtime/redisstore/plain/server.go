package plain

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// run is how commands get to a server: in a pipeline, or in a transaction.
type run func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

// server returns the client for the server of a key. A ring by itself would spread the commands of a transaction.
func (s *store) server(key string) redis.UniversalClient {
	if ring, ok := s.client.(*redis.Ring); ok {
		if shard, err := ring.GetShardClientForKey(key); err == nil {
			return shard
		}
	}
	return s.client
}

// ask sends commands for all counters, and returns the server's time just before them.
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
	return now, nil
}

// now returns the server's time as far as it is known here.
func (s *store) now() int64 { return time.Now().UnixMicro() + s.ahead.Load() }
