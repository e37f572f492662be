package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// patience is how long the tool waits for a reply.
const patience = 5 * time.Second

// connect connects to the server, or to its cluster. With shownKeys, the limiter takes keys in the form that errors show.
func (t *tool) connect(ctx context.Context, shownKeys bool) error {
	to, err := redis.ParseURL(t.url)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // leaves out the URL, which may have a password
	}
	if err != nil {
		return misused(fmt.Sprintf("-redis: %v; expected a URL such as redis://user:password@host:6379/0", err))
	}
	to.MaxRetries, to.DialerRetries = -1, 1
	single := redis.NewClient(to)
	t.client = single
	if single.Do(ctx, "cluster", "slots").Err() == nil { // a limiter's user is permitted to run this on a cluster
		t.client = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{to.Addr}, DialerRetries: 1, Username: to.Username, Password: to.Password, TLSConfig: to.TLSConfig,
		})
		_ = single.Close()
	}
	options := []ratelimit.Option{
		ratelimit.WithPrefix(t.prefix),
		ratelimit.WithLogger(slog.New(slog.DiscardHandler)), // the errors say the same
	}
	if shownKeys {
		options = append(options, ratelimit.WithShownKeys())
	}
	store := redisstore.New(t.client, redisstore.WithTimeout(patience), redisstore.WithoutFunctions())
	t.fleet = store.Fleet(key.Escape(t.prefix))
	t.fleet.Hide()
	t.limiter = ratelimit.New(store, options...)
	var listed []ratelimit.Rule
	for _, r := range t.listed {
		listed = append(listed, r.Rule)
	}
	return t.limiter.Check(listed...) // so that Ping checks the permissions that they need
}
