package servers

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Settings implements engine.Settings. A list is a Redis hash under the name of the list. No count has such a key, because the keys of counts
// have a subject. The list is read in parts, so that a long list does not block the server or this process.
func (s *Servers) Settings(ctx context.Context, list string) (map[string]string, error) {
	return Await(ctx, s, func() (map[string]string, error) { return s.settings(ctx, list) })
}

func (s *Servers) settings(ctx context.Context, list string) (map[string]string, error) {
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

// Set implements engine.Settings. The command is sent only once. If a command that sets only a new text were repeated after its reply was lost,
// it would find the text that it had set itself.
func (s *Servers) Set(ctx context.Context, list, name, text string, replaces func(old string) bool) (bool, error) {
	return Await(ctx, s, func() (bool, error) { return s.set(ctx, list, name, text, replaces) })
}

func (s *Servers) set(ctx context.Context, list, name, text string, replaces func(old string) bool) (bool, error) {
	command := "hset"
	if replaces != nil {
		command = "hsetnx"
	}
	set := once.New(ctx, command, list, name, text)
	switch err := s.Client.Process(ctx, set); {
	case err != nil:
		return false, probe.Reason(s.Client, err)
	case replaces == nil || set.Val() == int64(1):
		return true, nil
	}
	return s.replace(ctx, list, name, text, replaces)
}

// replace replaces a text if replaces allows that. It uses a transaction, so that only one of several callers succeeds.
func (s *Servers) replace(ctx context.Context, list, name, text string, replaces func(old string) bool) (set bool, err error) {
	err = s.Client.Watch(ctx, func(tx *redis.Tx) error {
		old, err := tx.HGet(ctx, list, name).Result()
		if err != nil || !replaces(old) {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.HSet(ctx, list, name, text).Err() })
		set = err == nil
		return err
	}, list)
	if errors.Is(err, redis.Nil) || errors.Is(err, redis.TxFailedErr) { // another caller has changed the list
		return s.set(ctx, list, name, text, replaces)
	}
	return set, probe.Reason(s.Client, err)
}

// Register implements engine.Settings.
func (s *Servers) Register(ctx context.Context, list string, texts map[string]string, life time.Duration) error {
	return s.awaitDone(ctx, func() error {
		_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, list, texts)
			p.PExpire(ctx, list, life)
			return nil
		})
		return probe.Reason(s.Client, err)
	})
}

// Unset implements engine.Settings.
func (s *Servers) Unset(ctx context.Context, list string, names ...string) error {
	if len(names) == 0 {
		return nil // HDEL needs at least one name
	}
	return s.awaitDone(ctx, func() error { return probe.Reason(s.Client, s.Client.HDel(ctx, list, names...).Err()) })
}
