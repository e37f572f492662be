package redisstore

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// settingsKey is the hash of what is set under a prefix. No count has such a key: theirs have a subject.
func settingsKey(prefix string) string { return prefix + ":overrides" }

// Settings implements decide.Settings.
func (s *store) Settings(ctx context.Context, prefix string) (texts map[string]string, err error) {
	err = s.Guard(func() error {
		texts, err = s.client.HGetAll(ctx, settingsKey(prefix)).Result()
		return err
	})
	return texts, err
}

// Set implements decide.Settings. A command that sets only where there is nothing is sent once: repeated after its reply was
// lost, it would find what it did itself.
func (s *store) Set(ctx context.Context, prefix, name, text string, fresh bool) (bool, error) {
	command := "hset"
	if fresh {
		command = "hsetnx"
	}
	set := once.New(ctx, command, settingsKey(prefix), name, text)
	err := s.Guard(func() error { return s.client.Process(ctx, set) })
	return err == nil && (!fresh || set.Val() == int64(1)), err
}

// Unset implements decide.Settings.
func (s *store) Unset(ctx context.Context, prefix, name string) error {
	return s.Guard(func() error { return s.client.HDel(ctx, settingsKey(prefix), name).Err() })
}
