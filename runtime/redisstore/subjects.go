package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/parts"
)

// bySubject decides calls on the servers. If different subjects may be on different servers, the claims of one subject are a part of the call,
// and the parts are decided one after the other.
type bySubject struct{ *store }

const crossSlot = "CROSSSLOT " // the beginning of a cluster's error if the subjects of a run are in different slots

// Decide implements engine.Decider. All parts together have one timeout.
func (b bySubject) Decide(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
	if !b.subjects.IsWhole(call) {
		return b.bySubject(&part{b.store, time.Now().Add(b.Timeout)}).Decide(ctx, call)
	}
	split := b.Split.Load()
	v, err := b.one.Decide(ctx, call)
	if err != nil && !split && strings.HasPrefix(err.Error(), crossSlot) {
		b.Split.Store(true) // the server is a cluster, although the client does not show it; nothing was charged
		if call.Lease == 0 {
			return b.Decide(ctx, call)
		}
	}
	return v, err
}

// bySubject splits calls by subject, if different subjects may be on different servers. Each part is decided by one.
func (s *store) bySubject(one *part) parts.Split {
	return func(c *engine.Claim) (string, engine.Decider) {
		if s.Split.Load() {
			return c.Subject, one
		}
		return "", one
	}
}

// Adjust implements engine.Decider.
func (b bySubject) Adjust(ctx context.Context, call *engine.Call) error {
	return b.subjects.Adjust(ctx, call)
}

// Reset implements engine.Decider.
func (b bySubject) Reset(ctx context.Context, call *engine.Call) (int, error) {
	return b.subjects.Reset(ctx, call)
}

// part decides claims that are on one server.
type part struct {
	*store
	until time.Time // when the time of the whole decision ends; zero if this is its first request
}

// Decide implements engine.Decider. After a panic the call may have been admitted, as if its reply were lost.
func (p *part) Decide(ctx context.Context, call *engine.Call) (v engine.Verdict, err error) {
	r := request{call: call, until: p.until}
	sentAt := clock()
	err = errPanicked
	defer func() { p.renewals.noteDecision(call, v, err, sentAt) }()
	if err = p.do(ctx, &r); err == nil { // otherwise the batch may still write the request's verdict
		v = r.verdict
	}
	return v, err
}

var errPanicked = errors.New("the client panicked")

// Adjust implements engine.Decider. If ctx ends, and after p.until, it goes on in the background, because a charge must not outlive its call.
func (p *part) Adjust(ctx context.Context, call *engine.Call) error {
	own := *call
	own.Asked = false
	own.Claims = nil
	for _, c := range call.Claims {
		if c.Delta != 0 {
			own.Claims = append(own.Claims, c)
		}
	}
	if len(own.Claims) == 0 {
		return nil
	}
	p.renewals.startGiveBack(&own)
	err := p.do(ctx, &request{call: &own, adjust: true, until: p.until})
	if err == nil {
		p.renewals.endGiveBack(&own)
	} else if untaken(err) {
		if p.until.IsZero() || time.Now().Before(p.until) {
			return err
		}
		p.adjustLater(clone(&own))
	}
	for i := range call.Claims {
		c := &call.Claims[i]
		if c.Delta == 0 {
			continue
		}
		if c.Delta = 0; err == nil {
			c.Delta, c.At = own.Claims[0].Delta, own.Claims[0].At
		}
		own.Claims = own.Claims[1:]
	}
	return err
}

// adjustLater sends an adjustment in the next batch. Nobody waits for it.
func (p *part) adjustLater(call *engine.Call) {
	if n, err := p.node(context.Background(), call.Claims[0].Subject); err == nil {
		n.adjust(call)
	}
}

// Reset implements engine.Decider.
func (p *part) Reset(ctx context.Context, call *engine.Call) (found int, err error) {
	var states []*redis.IntCmd
	_, err = p.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range call.Claims {
			c := &call.Claims[i]
			states = append(states, pipe.Del(ctx, key.State(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag)))
			pipe.Del(ctx, key.Free(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag), key.Block(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag),
				key.Pause(call.Prefix, c.Rule.Name, c.Subject, c.Rule.Tag))
		}
		return nil
	})
	for _, deleted := range states {
		found += int(deleted.Val())
	}
	return found, err
}
