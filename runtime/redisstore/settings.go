package redisstore

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// settingsKey is the hash of what is set under a prefix. No count has such a key: theirs have a subject.
func settingsKey(prefix string) string { return prefix + ":overrides" }

// Settings implements engine.Settings.
func (s *store) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	return s.client.HGetAll(ctx, settingsKey(prefix)).Result()
}

// Set implements engine.Settings. The command is sent once: repeated after its reply was lost, one that sets only where there is
// nothing would find what it did itself.
func (s *store) Set(ctx context.Context, prefix, name, text string, onlyNew bool) (bool, error) {
	command := "hset"
	if onlyNew {
		command = "hsetnx"
	}
	set := once.New(ctx, command, settingsKey(prefix), name, text)
	err := s.client.Process(ctx, set)
	return err == nil && (!onlyNew || set.Val() == int64(1)), err
}

// Unset implements engine.Settings.
func (s *store) Unset(ctx context.Context, prefix, name string) error {
	return s.client.HDel(ctx, settingsKey(prefix), name).Err()
}
