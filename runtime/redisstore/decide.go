package redisstore

import (
	"context"
	"errors"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// request is a call on its way to its server: to be decided, or to be adjusted.
type request struct {
	call   *engine.Call
	adjust bool

	verdict engine.Verdict
	err     error
}

// maxAsks bounds how often one call is sent because the calendar windows were not those of the server's time. Twice is enough
// unless the server's clock jumps.
const maxAsks = 5

// decide decides a call whose claims are on one server.
func (s *store) decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	r := request{call: call}
	err := s.do(ctx, &r)
	return r.verdict, err
}

// do sends a request, again where the server asks for other calendar windows.
func (s *store) do(ctx context.Context, r *request) error {
	n, err := s.node(ctx, r.call.Claims[0].Subject)
	if err != nil {
		return err
	}
	for range maxAsks {
		n.do(ctx, r)
		windows, again := errors.AsType[lua.WindowsAt](r.err)
		if !again {
			return r.err
		}
		n.set(int64(windows))
	}
	return r.err
}

func (n *node) do(ctx context.Context, r *request) {
	p := new(part)
	r.add(&p.Run, n.now())
	n.send(ctx, []*part{p})
	if r.err = p.err; r.err == nil {
		r.read(p.reply)
	}
}

func (r *request) add(run *lua.Run, now int64) {
	if r.adjust {
		run.AddAdjustment(r.call, now)
	} else {
		run.AddDecision(r.call, now)
	}
}

// read takes in the script's reply to the request.
func (r *request) read(reply any) {
	if !r.adjust {
		r.verdict, r.err = lua.ReadDecision(reply, r.call)
		return
	}
	switch reply := reply.(type) {
	case error:
		r.err = reply
	case int64:
		r.err, r.verdict.Now = nil, reply
		if reply <= 0 {
			r.err = lua.WindowsAt(-reply)
		}
	default:
		r.err = lua.ErrReply
	}
}
