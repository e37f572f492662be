package redisstore

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// settingsKey is the hash of what is set under a prefix. No count has such a key: theirs have a subject.
func settingsKey(prefix string) string { return prefix + ":overrides" }

// Settings implements decide.Settings.
func (s *store) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	return ask(ctx, s, func(ctx context.Context) (map[string]string, error) {
		return s.client.HGetAll(ctx, settingsKey(prefix)).Result()
	})
}

// Set implements decide.Settings. A command that sets only where there is nothing is sent once: repeated after its reply was
// lost, it would find what it did itself.
func (s *store) Set(ctx context.Context, prefix, name, text string, onlyNew bool) (bool, error) {
	command := "hset"
	if onlyNew {
		command = "hsetnx"
	}
	reply, err := ask(ctx, s, func(ctx context.Context) (any, error) {
		set := once.New(ctx, command, settingsKey(prefix), name, text)
		err := s.client.Process(ctx, set)
		return set.Val(), err
	})
	return err == nil && (!onlyNew || reply == int64(1)), err
}

// Unset implements decide.Settings.
func (s *store) Unset(ctx context.Context, prefix, name string) error {
	_, err := ask(ctx, s, func(ctx context.Context) (int64, error) {
		return s.client.HDel(ctx, settingsKey(prefix), name).Result()
	})
	return err
}
