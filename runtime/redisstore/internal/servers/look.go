package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
)

// Each calls look for each server: see the method Servers of backend.Store. What look sends returns when ctx ends.
func (s *Servers) Each(ctx context.Context, look func(ctx context.Context, name string, do fleet.Do) error) error {
	several, err := Await(ctx, s, func() (all []*redis.Client, err error) {
		var mu sync.Mutex
		add := func(_ context.Context, server *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, server)
			return nil
		}
		switch c := s.Client.(type) {
		case *redis.ClusterClient:
			err = c.ForEachMaster(ctx, add)
		case *redis.Ring:
			err = c.ForEachShard(ctx, add)
		}
		return all, probe.Reason(s.Client, err)
	})
	switch {
	case err != nil:
		return err
	case len(several) == 0:
		return look(ctx, "", s.doOn(s.Client))
	}
	failed := make([]error, len(several))
	var looks sync.WaitGroup
	for i, server := range several {
		looks.Go(func() {
			name := server.Options().Addr
			if panicked := s.Guard(func() { failed[i] = look(ctx, name, s.doOn(server)) }); panicked != nil {
				failed[i] = panicked
			}
			if failed[i] != nil {
				failed[i] = fmt.Errorf("%s: %w", name, failed[i])
			}
		})
	}
	looks.Wait()
	return printable.Join(failed...)
}

// doOn returns a function that sends commands to one server. It does not send them if the server is known to be away and still is.
func (s *Servers) doOn(server redis.UniversalClient) fleet.Do {
	return func(ctx context.Context, commands ...fleet.Command) ([]any, error) {
		return Await(ctx, s, func() (all []any, err error) {
			var replies []redis.Cmder
			err = s.Breaker(server, server).Ask(ctx, func() (err error) {
				replies, err = server.Pipelined(ctx, appendTo(ctx, commands))
				all, err = results(replies, err)
				return err
			})
			if redis.HasErrorPrefix(err, "NOPERM") {
				return nil, &backend.DeniedError{Command: deniedOf(replies), Err: err}
			}
			return all, probe.Reason(server, err)
		})
	}
}

// deniedOf returns the name of the first command that failed.
func deniedOf(replies []redis.Cmder) string {
	for _, reply := range replies {
		if err := reply.Err(); err != nil && err != redis.Nil {
			return strings.ToUpper(reply.Name())
		}
	}
	return ""
}
