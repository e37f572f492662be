package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Settings implements engine.Settings. A list is a hash of its name. No count has such a key: theirs have a subject.
func (s *store) Settings(ctx context.Context, list string) (map[string]string, error) {
	texts, err := s.client.HGetAll(ctx, list).Result()
	return texts, probe.Reason(s.client, err)
}

// Set implements engine.Settings. The command is sent once: repeated after its reply was lost, one that sets only where there is
// nothing would find what it did itself.
func (s *store) Set(ctx context.Context, list, name, text string, onlyNew bool) (bool, error) {
	command := "hset"
	if onlyNew {
		command = "hsetnx"
	}
	set := once.New(ctx, command, list, name, text)
	err := s.client.Process(ctx, set)
	return err == nil && (!onlyNew || set.Val() == int64(1)), probe.Reason(s.client, err)
}

// Register implements engine.Registry.
func (s *store) Register(ctx context.Context, list string, texts map[string]string, life time.Duration) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, list, texts)
		p.PExpire(ctx, list, life)
		return nil
	})
	return probe.Reason(s.client, err)
}

// Unset implements engine.Settings.
func (s *store) Unset(ctx context.Context, list, name string) error {
	return probe.Reason(s.client, s.client.HDel(ctx, list, name).Err())
}
