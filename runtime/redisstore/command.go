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

// operation is what the script is asked to do, and the time or delay that goes with it. The zero operation decides a plain call.
type operation struct {
	name    string
	operand int64
}

// The names of the script's other operations.
const (
	opWait   = "wait"
	opFrom   = "from"
	opPeek   = "peek"
	opRefuse = "refuse"
	opReturn = "return"
	opUndo   = "undo"
)

// run runs the script for a group. A decision that is made after the end of ctx is undone. A return is made in any case.
func (s *store) run(ctx context.Context, g *group, now int64, op operation) (any, error) {
	args := g.args(now, g.until(now, op))
	if op.name != "" {
		args = append(args, op.name, op.operand)
	}
	whole := ctx
	var late func(any, error)
	switch {
	case ctx.Done() == nil:
	case op.name == opReturn || op.name == opUndo:
		whole = context.WithoutCancel(ctx)
	case op.name == "" || op.name == opWait || op.name == opFrom:
		own := g.clone() // the caller's claims are gone by then
		late = func(reply any, err error) {
			if err == nil {
				s.undo(own, reply)
			}
		}
	}
	return once.Await(ctx, func() (any, error) { return s.eval(whole, len(g.keys), args) }, late)
}

// undo gives back what a decision took that nobody waited for.
func (s *store) undo(g *group, reply any) {
	if at, ok := reply.(int64); ok && at < 0 {
		return
	}
	if v, err := g.read(reply, true); err == nil && v.Admitted {
		_ = s.giveBack(context.Background(), opUndo, []*group{g})
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

// ask sends a command that is not a decision.
func ask[T any](ctx context.Context, s *store, send func(context.Context) (T, error)) (T, error) {
	return once.Await(ctx, func() (reply T, err error) {
		err = s.Guard(func() error {
			reply, err = send(once.Undated(ctx))
			return err
		})
		return reply, err
	}, nil)
}
