package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/parts"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// bySubject decides calls on the servers. If different subjects may be on different servers, the claims of one subject are a part of the call,
// and the parts are decided one after the other.
type bySubject struct {
	parts.Split // adjusts and resets
	of          *store
}

const crossSlot = "CROSSSLOT " // the beginning of a cluster's error if the subjects of a run are in different slots

// Decide implements backend.Decider. All parts together have one timeout.
func (b bySubject) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	s := b.of
	split := s.Split.Load() // before Sole, because another call may find the cluster meanwhile
	if b.Sole(call) == nil {
		return s.bySubject(&oneServer{s, time.Now().Add(s.Timeout)}).Decide(ctx, call)
	}
	v, err := s.one.Decide(ctx, call)
	if err != nil && !split && strings.HasPrefix(err.Error(), crossSlot) {
		s.Split.Store(true)  // the server is a cluster, although the client does not show it; nothing was charged
		if call.Lease == 0 { // takeAhead decides a call with a lease anew: its rules are on several servers now
			return b.Decide(ctx, call)
		}
	}
	return v, err
}

// bySubject splits calls by subject, if different subjects may be on different servers. decider decides each part.
func (s *store) bySubject(decider *oneServer) parts.Split {
	return func(c *engine.Claim) (string, backend.Decider) {
		if s.Split.Load() {
			return c.Subject, decider
		}
		return "", decider
	}
}

// oneServer decides claims that are on one server.
type oneServer struct {
	*store
	until time.Time // when the time of the whole decision ends; if zero, that time begins with the first request
}

// Decide implements backend.Decider. A panic counts as a lost reply: the call may have been admitted.
func (o *oneServer) Decide(ctx context.Context, call *engine.Call) (v engine.Verdict, err error) {
	r := request{call: call, until: o.until}
	sentAt := clock()
	err = errPanicked
	defer func() { o.renewals.noteDecision(call, v, err, sentAt) }()
	if err = o.do(ctx, &r); err == nil { // otherwise the batch may still write the request's verdict
		v = r.verdict
	}
	return v, err
}

var errPanicked = errors.New("the client panicked")

// maxAsks bounds how often a call is sent. A call is sent again if its calendar windows were not those of the server's time, or if equal calls
// took its permits.
const maxAsks = 5

// errAgain says that a request must be sent again, because calls that were joined with it took the permits. It is never the error of a call,
// because the last tries are not joined.
var errAgain = errors.New("other calls took the permits")

// do sends a request, several times if necessary. All of that has one timeout.
func (s *store) do(ctx context.Context, r *request) error {
	n, err := s.node(ctx, r.call.Claims[0].Subject)
	if err != nil {
		return err
	}
	for asks := 1; ; asks++ {
		err := n.do(ctx, r)
		serverTime, wrongWindows := errors.AsType[lua.WindowsAt](err)
		switch {
		case asks == maxAsks || !wrongWindows && err != errAgain:
			return err
		case wrongWindows:
			n.noteTime(int64(serverTime))
		}
		r.solo = asks >= maxAsks-2 // the last two tries are not joined: one of them may only learn the right windows
	}
}

// Adjust implements backend.Decider. It returns at the latest when ctx or the time of the decision ends. The adjustment still goes to the server,
// because a charge must not outlive its call. All claims of the call change.
func (o *oneServer) Adjust(ctx context.Context, call *engine.Call) error {
	call.Asked = false
	o.renewals.startGiveBack(call)
	err := o.do(ctx, &request{call: call, adjust: true, until: o.until})
	switch {
	case err == nil:
		o.renewals.endGiveBack(call)
		return nil
	case untaken(err) && (o.until.IsZero() || time.Now().Before(o.until)): // nothing was done, and there is time: the caller may try again
		return err
	case untaken(err):
		o.adjustLater(call.Clone())
	}
	call.ClearDeltas()
	return err
}

// adjustLater sends an adjustment for which no caller waits.
func (o *oneServer) adjustLater(call *engine.Call) {
	if n, err := o.node(context.Background(), call.Claims[0].Subject); err == nil {
		n.adjustLater(call)
	}
}

// Reset implements backend.Decider.
func (o *oneServer) Reset(ctx context.Context, call *engine.Call) (found int, err error) {
	var states []*redis.IntCmd
	_, err = o.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range call.Claims {
			c := &call.Claims[i]
			state := key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag)
			states = append(states, pipe.Del(ctx, state))
			pipe.Del(ctx, key.FreeOf(state), key.BlockOf(state), key.PauseOf(state))
		}
		return nil
	})
	for _, deleted := range states {
		found += int(deleted.Val())
	}
	return found, probe.Reason(o.Client, err)
}
