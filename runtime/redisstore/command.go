package redisstore

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/once"
)

//go:embed script.lua
var source string

var sha = redis.NewScript(source).Hash()

// run runs the script for a group; the operation and its operand follow the rules. A decision that is made after the end of
// ctx is undone. A return is made in any case.
func (s *store) run(ctx context.Context, g *group, now int64, operation ...any) (any, error) {
	args := append(g.args(now), operation...)
	whole, late := ctx, func(any) {}
	switch {
	case ctx.Done() == nil:
	case len(operation) > 0 && (operation[0] == "return" || operation[0] == undo):
		whole = context.WithoutCancel(ctx)
	case len(operation) == 0 || operation[0] == "wait":
		own := g.clone() // the caller's claims are gone by then
		late = func(reply any) { s.undo(own, reply) }
	}
	return await(ctx, func() (any, error) { return s.eval(whole, len(g.keys), args) }, late)
}

// await returns what f returns, or ctx's error as soon as ctx ends, which the client by itself does not look at. Then late gets
// the result.
func await(ctx context.Context, f func() (any, error), late func(any)) (any, error) {
	if ctx.Done() == nil {
		return f()
	}
	type result struct {
		value any
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		go func() { late((<-done).value) }()
		return nil, ctx.Err()
	}
}

// undo gives back what a decision took that nobody waited for.
func (s *store) undo(g *group, reply any) {
	if at, ok := reply.(int64); ok && at < 0 {
		return
	}
	if v, err := g.read(reply, true); err == nil && v.Admitted {
		_ = s.giveBack(context.Background(), undo, []*group{g})
	}
}

// eval runs the script. The server keeps scripts by hash until it restarts or is told to flush them; where it does not know
// the hash it has done nothing, and gets the text.
func (s *store) eval(ctx context.Context, keys int, args []any) (any, error) {
	var value any
	ctx = once.Undated(ctx)
	err := s.Guard(func() error {
		cmd := once.New(ctx, append([]any{"evalsha", sha, keys}, args...)...)
		err := s.client.Process(ctx, cmd)
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ") {
			cmd = once.New(ctx, append([]any{"eval", source, keys}, args...)...)
			err = s.client.Process(ctx, cmd)
		}
		value = cmd.Val()
		return err
	})
	return value, err
}

// Guard asks the server, unless it could not be reached a moment ago. Package plain asks through it as well.
func (s *store) Guard(ask func() error) error {
	if err := s.breaker.check(); err != nil {
		return err
	}
	return s.breaker.note(ask())
}
