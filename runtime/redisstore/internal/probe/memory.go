package probe

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Evicts returns an error if the server removes counts when its memory is full. It returns nil as well if the user may not ask.
func Evicts(ctx context.Context, server redis.UniversalClient) error {
	text, err := server.Info(ctx, "memory").Result()
	if err != nil {
		return nil
	}
	info := Info(text)
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		return fmt.Errorf("maxmemory-policy is %s: set noeviction, or give the counts a server of their own", policy)
	}
	return nil
}

// Info returns the fields of a reply to INFO, or to CLUSTER INFO.
func Info(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[field] = value
		}
	}
	return info
}
