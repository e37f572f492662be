package probe

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// Evicts returns an error if the server removes counts when its memory is full. It also returns nil if the user may not ask.
func Evicts(ctx context.Context, server redis.UniversalClient) error {
	text, err := server.Info(ctx, "memory").Result()
	if err != nil {
		return nil
	}
	info := redisinfo.Fields(text)
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		return fmt.Errorf("maxmemory-policy is %s: set noeviction, or give the counts a server of their own", policy)
	}
	return nil
}
