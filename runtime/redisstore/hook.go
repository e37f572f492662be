package redisstore

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

// inTime is a hook of a server's client. It passes the commands of a node on to a copy of the client that has the store's timeout. Copies that
// go-redis makes have no hooks. So the commands are given to the client itself, pass through the hooks that it had before this one, and go on
// through the copy. The hook also keeps why the last connection failed: a command that is given up while the client tries to connect again and
// again does not tell.
type inTime struct {
	own     *redis.Client
	refused *atomic.Pointer[error] // nil if the last connection succeeded
}

// newCopy returns a copy of a server's client with the store's timeout, and makes the client pass commands on to it.
func (s *store) newCopy(client *redis.Client) inTime {
	own := client.WithTimeout(s.Timeout)
	own.Options().ContextTimeoutEnabled = true // the copy has its own options
	h := inTime{own, new(atomic.Pointer[error])}
	client.AddHook(h)
	return h
}

func (h inTime) owns(cmd redis.Cmder) bool {
	c, ok := cmd.(once.Cmd)
	return ok && c.By == h.own
}

// DialHook implements redis.Hook.
func (h inTime) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		connection, err := next(ctx, network, addr)
		switch {
		case err == nil:
			h.refused.Store(nil)
		case ctx.Err() == nil:
			h.refused.Store(&err)
		}
		return connection, err
	}
}

// ProcessHook implements redis.Hook.
func (h inTime) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.owns(cmd) {
			return h.own.Process(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h inTime) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || !h.owns(cmds[0]) {
			return next(ctx, cmds)
		}
		_, err := h.own.Pipelined(ctx, func(p redis.Pipeliner) error { return p.BatchProcess(ctx, cmds...) })
		return err
	}
}
