package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// patience is how long the tool waits for an answer.
const patience = 5 * time.Second

// connect connects to the server, or to the cluster that it is of.
func (t *tool) connect(ctx context.Context) error {
	to, err := redis.ParseURL(t.url)
	if err != nil {
		return misused(fmt.Sprintf("-redis: %v; expected a URL such as redis://user:password@host:6379/0", err))
	}
	single := redis.NewClient(to)
	t.client = single
	if text, err := single.Info(ctx, "cluster").Result(); err == nil && strings.Contains(text, "cluster_enabled:1") {
		t.client = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{to.Addr}, Username: to.Username, Password: to.Password, TLSConfig: to.TLSConfig,
		})
		_ = single.Close()
	}
	t.limiter = ratelimit.New(redisstore.New(t.client, redisstore.WithTimeout(patience)), ratelimit.WithPrefix(t.prefix))
	return nil
}
