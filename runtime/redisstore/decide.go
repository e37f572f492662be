package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// request is a call on its way to its server, to be decided or adjusted.
type request struct {
	call   *engine.Call
	adjust bool
	solo   bool      // not joined with equal requests
	until  time.Time // when the time of the whole decision ends; zero before its first request is sent

	verdict engine.Verdict
	err     error
	left    bool // the caller no longer waits for the answer
}

// maxAsks bounds how often one call is sent. It is sent again if its calendar windows were not those of the server's time, or if equal calls
// took the permits that it could have had.
const maxAsks = 5

// lateError returns the error of a decision that has used up its time. Its server may still decide it.
func (s *store) lateError() error {
	return probe.Reason(s.Client, fmt.Errorf("no reply within %v: %w", s.Timeout, os.ErrDeadlineExceeded))
}

// do sends a request, several times if necessary. All of that has one timeout.
func (s *store) do(ctx context.Context, r *request) error {
	n, err := s.node(ctx, r.call.Claims[0].Subject)
	if err != nil {
		return err
	}
	for asks := 1; ; asks++ {
		err := n.do(ctx, r)
		windows, other := errors.AsType[lua.WindowsAt](err)
		switch {
		case asks == maxAsks || !other && err != errAgain:
			return err
		case other:
			n.set(int64(windows))
		default:
			r.solo = asks+1 >= maxAsks-1
		}
	}
}

// recalled answers a request from a remembered refusal, if there is one.
func (r *request) recalled(m *refusals) (known bool) {
	if r.adjust {
		return false
	}
	if r.verdict, known, _ = m.recall(r.call); known {
		r.err = nil
	}
	return known
}

// permits returns the largest number of permits that sliding windows may have to write for the request.
func (r *request) permits() (n int64) {
	for i := range r.call.Claims {
		c := &r.call.Claims[i]
		switch {
		case !c.Rule.Kind.KeepsTimes(), r.call.Change >= engine.Pauses:
		case r.adjust:
			n += max(0, c.Delta)
		default:
			n += max(c.Cost, r.call.Ahead)
		}
	}
	return n
}
