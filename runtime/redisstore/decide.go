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
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/probe"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Decide implements backend.Decider.
func (s *store) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	return s.answers.Decide(ctx, call)
}

// Adjust implements backend.Decider.
func (s *store) Adjust(ctx context.Context, call *engine.Call) error {
	return s.answers.Adjust(ctx, call)
}

// Reset implements backend.Decider.
func (s *store) Reset(ctx context.Context, call *engine.Call) (int, error) {
	own := call.Clone() // the caller may reuse its call
	return servers.Await(ctx, s.servers, func() (int, error) { return s.answers.Reset(ctx, own) })
}

const crossSlot = "CROSSSLOT " // the beginning of a cluster's error if the subjects of a run are in different slots

// ask decides a call on the servers: on one, or part by part. All parts together have one timeout. asked says that another caller has just asked the
// same.
func (s *store) ask(ctx context.Context, call *engine.Call, asked bool) (engine.Verdict, error) {
	split := s.servers.Split.Load() // once, because another call may find the cluster meanwhile
	if split && !hasOneSubject(call) {
		return s.bySubject(call, oneServer{s, time.Now().Add(s.servers.Timeout), asked}).Decide(ctx, call)
	}
	v, err := oneServer{store: s, asked: asked}.Decide(ctx, call)
	if err != nil && !split && strings.HasPrefix(err.Error(), crossSlot) {
		s.servers.Split.Store(true) // the server is a cluster, although the client does not show it; nothing was charged
		if call.Lease == 0 {        // takeAhead decides a call with a lease anew: its rules are on several servers now
			return s.ask(ctx, call, asked)
		}
	}
	return v, err
}

// isOnOneServer reports whether all claims of a call are on one server.
func (s *store) isOnOneServer(call *engine.Call) bool {
	return !s.servers.Split.Load() || hasOneSubject(call)
}

func hasOneSubject(call *engine.Call) bool {
	for i := range call.Claims {
		if call.Claims[i].Subject != call.Claims[0].Subject {
			return false
		}
	}
	return true
}

// bySubject splits a call by subject, if different subjects may be on different servers. server decides each part.
func (s *store) bySubject(call *engine.Call, server backend.Decider) parts.Split {
	split := s.servers.Split.Load()
	return func(i int) (string, backend.Decider) {
		if split {
			return call.Claims[i].Subject, server
		}
		return "", server
	}
}

// oneServer is a decider of claims that are on one server.
type oneServer struct {
	store *store
	until time.Time // when the time of the whole decision ends; if zero, that time begins with the first request
	asked bool      // see request
}

// Decide implements backend.Decider. A panic counts as a lost reply: the call may have been admitted.
func (o oneServer) Decide(ctx context.Context, call *engine.Call) (v engine.Verdict, err error) {
	r := request{call: call, until: o.until, asked: o.asked}
	sentAt := clock()
	err = breaker.ErrPanicked
	defer func() { o.store.renewals.noteDecision(call, v, err, sentAt) }()
	if err = o.store.do(ctx, &r); err == nil { // otherwise the batch may still write the request's verdict
		v = r.verdict
	}
	return v, err
}

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
		if err == nil && r.lacksWindows() {
			serverTime, wrongWindows = lua.WindowsAt(r.verdict.Now), true
		}
		switch {
		case asks == maxAsks || !wrongWindows && err != errAgain:
			return err
		case wrongWindows:
			n.noteTime(int64(serverTime))
		}
		r.solo = asks >= maxAsks-2 // the last two tries are not joined: one of them may only learn the right windows
	}
}

// lacksWindows reports whether no place was kept for a call that may wait, and the call was sent other calendar windows than those of the server's
// time. Then the window of its place may be missing.
func (r *request) lacksWindows() bool {
	return !r.adjust && r.call.AskAgain(r.verdict) && !lua.SameWindows(r.call, r.now, r.verdict.Now)
}

// Adjust implements backend.Decider. It returns at the latest when ctx or the time of the decision ends. The adjustment still goes to the server,
// because a charge must not outlive its call. All claims of the call change.
func (o oneServer) Adjust(ctx context.Context, call *engine.Call) error {
	o.store.renewals.startGiveBack(call)
	err := o.store.do(ctx, &request{call: call, adjust: true, until: o.until})
	switch {
	case err == nil:
		o.store.renewals.endGiveBack(call)
		return nil
	case untaken(err) && (o.until.IsZero() || time.Now().Before(o.until)): // nothing was done, and there is time: the caller may try again
		return err
	case untaken(err):
		if n, err := o.store.node(context.Background(), call.Claims[0].Subject); err == nil {
			n.adjustLater(call.Clone())
		}
	}
	call.ClearDeltas()
	return err
}

// Reset implements backend.Decider.
func (o oneServer) Reset(ctx context.Context, call *engine.Call) (found int, err error) {
	var states []*redis.IntCmd
	_, err = o.store.servers.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
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
	return found, probe.Reason(o.store.servers.Client, err)
}
