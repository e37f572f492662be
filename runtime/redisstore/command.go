package redisstore

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed script.lua
var source string

var sha = redis.NewScript(source).Hash()

// once is a command that the client sends once at most. Otherwise it would repeat a decision whose reply got lost, and one
// call would be charged several times.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (c once) Clone() redis.Cmder { return once{c.Cmd.Clone().(*redis.Cmd)} }

// run runs the script for a group; the operation and its operand follow the rules. It returns as soon as ctx ends, which the
// client by itself does not; a decision that is made later nevertheless is undone.
func (s *store) run(ctx context.Context, g *group, now int64, operation ...any) (any, error) {
	args := append(g.args(now), operation...)
	if ctx.Done() == nil {
		return s.eval(ctx, len(g.keys), args)
	}
	type result struct {
		reply any
		err   error
	}
	done := make(chan result, 1)
	go func() {
		reply, err := s.eval(ctx, len(g.keys), args)
		done <- result{reply, err}
	}()
	select {
	case r := <-done:
		return r.reply, r.err
	case <-ctx.Done():
		if len(operation) == 0 || operation[0] == "wait" {
			late := g.clone() // the caller's claims are gone by then
			go func() { s.undo(late, (<-done).reply) }()
		}
		return nil, ctx.Err()
	}
}

// undo gives back what a decision took that nobody waited for.
func (s *store) undo(g *group, reply any) {
	if at, ok := reply.(int64); ok && at < 0 {
		return
	}
	if v, err := g.read(reply, true); err == nil && v.Admitted {
		_ = s.giveBack(context.Background(), []*group{g})
	}
}

// eval runs the script. The server keeps scripts by hash until it restarts or is told to flush them; where it does not know
// the hash it has done nothing, and gets the text.
func (s *store) eval(ctx context.Context, keys int, args []any) (any, error) {
	if err := s.breaker.check(); err != nil {
		return nil, err
	}
	cmd := once{redis.NewCmd(ctx, append([]any{"evalsha", sha, keys}, args...)...)}
	err := s.client.Process(ctx, cmd)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ") {
		cmd = once{redis.NewCmd(ctx, append([]any{"eval", source, keys}, args...)...)}
		err = s.client.Process(ctx, cmd)
	}
	return cmd.Val(), s.breaker.note(err)
}
