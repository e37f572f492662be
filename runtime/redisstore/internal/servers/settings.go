package servers

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Settings implements engine.Settings. A list is a hash of its name. No count has such a key: theirs have a subject. The list is read in
// parts, so that no length of it holds up the server or this process.
func (s *Servers) Settings(ctx context.Context, list string) (map[string]string, error) {
	texts := make(map[string]string)
	for cursor := uint64(0); ; {
		part, next, err := s.Client.HScan(ctx, list, cursor, "", engine.MaxSettings+1).Result()
		if err != nil {
			return nil, probe.Reason(s.Client, err)
		}
		for i := 0; i+1 < len(part); i += 2 {
			texts[part[i]] = part[i+1]
		}
		if cursor = next; cursor == 0 || len(texts) > engine.MaxSettings {
			return texts, nil
		}
	}
}

// Set implements engine.Settings. The command is sent once: repeated after its reply was lost, one that sets only where there is
// nothing would find what it did itself.
func (s *Servers) Set(ctx context.Context, list, name, text string, onlyNew bool) (bool, error) {
	command := "hset"
	if onlyNew {
		command = "hsetnx"
	}
	set := once.New(ctx, command, list, name, text)
	err := s.Client.Process(ctx, set)
	return err == nil && (!onlyNew || set.Val() == int64(1)), probe.Reason(s.Client, err)
}

// Register implements engine.Settings.
func (s *Servers) Register(ctx context.Context, list string, texts map[string]string, life time.Duration) error {
	_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, list, texts)
		p.PExpire(ctx, list, life)
		return nil
	})
	return probe.Reason(s.Client, err)
}

// Unset implements engine.Settings.
func (s *Servers) Unset(ctx context.Context, list string, names ...string) error {
	if len(names) == 0 {
		return nil // which the command does not allow
	}
	return probe.Reason(s.Client, s.Client.HDel(ctx, list, names...).Err())
}
