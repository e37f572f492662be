package main

import (
	"encoding/binary"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// exercise is a limiter that does everything limiters do under a rule, and records its first error. It does not use Ping, which tries each command.
type exercise struct {
	*ratelimit.Limiter
	t     *testing.T
	rule  ratelimit.Rule
	user  *redis.Client // the limiter's client
	admin *program      // may read all keys
	err   error
}

// doAll exercises a limiter of a user under a rule, with the rule's name as its prefix, and returns the first error.
func doAll(t *testing.T, server *redistest.Server, user *redis.Client, rule ratelimit.Rule) error {
	admin := newFleet(t, server.Addr)
	admin.Limiter = ratelimit.New(redisstore.New(admin.client, redisstore.WithTimeout(20*time.Second)), ratelimit.WithPrefix(rule.Name))
	_, _ = admin.Reset(t.Context(), ratelimit.Request{Rule: rule, Key: "k"})
	e := &exercise{
		Limiter: ratelimit.New(redisstore.New(user, redisstore.WithTimeout(20*time.Second)), ratelimit.WithPrefix(rule.Name),
			ratelimit.WithLogger(slog.New(slog.DiscardHandler))),
		t: t, rule: rule, user: user, admin: admin,
	}
	for _, step := range []func(){e.charge, e.refuse, e.wait, e.settings, e.reset} {
		if step(); e.err != nil {
			break
		}
	}
	return e.err
}

func (e *exercise) check(err error) {
	if e.err == nil {
		e.err = err
	}
}

// request returns a request for permits, or for a member.
func (e *exercise) request(cost int64, member string) ratelimit.Request {
	r := ratelimit.Request{Rule: e.rule, Key: "k", Cost: cost}
	if e.rule.Distinct != "" {
		r.Cost, r.Member = 1, member
	}
	return r
}

func (e *exercise) allow(requests ...ratelimit.Request) ratelimit.Decision {
	d, err := e.Allow(e.t.Context(), requests...)
	e.check(err)
	return d
}

// charge charges, refunds, settles and peeks.
func (e *exercise) charge() {
	if e.rule.Distinct != "" { // a member that has left the window
		keys, err := e.StateKeys(e.request(1, ""))
		e.check(err)
		e.check(e.admin.client.ZAdd(e.t.Context(), keys[0], redis.Z{Score: 1, Member: "old"}).Err())
	}
	if e.rule.Algorithm == ratelimit.SlidingWindow && e.rule.Distinct == "" && e.rule.Cron == "" { // permits that have left the window
		keys, err := e.StateKeys(e.request(1, ""))
		e.check(err)
		old := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1))
		for range e.rule.Limit {
			e.check(e.admin.client.RPush(e.t.Context(), keys[0], old).Err())
		}
		e.check(e.admin.client.PExpire(e.t.Context(), keys[0], time.Hour).Err())
		e.allow(e.request(1, "")) // drops one
		e.allow(e.request(3, "")) // drops more
	}
	for _, member := range []string{"a", "b", "c"} {
		e.allow(e.request(1, member))
	}
	e.check(e.allow(e.request(1, "d")).Refund(e.t.Context()))
	if e.rule.Distinct == "" {
		leased := e.request(1, "")
		leased.Rule.Lease = 100 * time.Millisecond
		if leased.Rule.Validate() == nil {
			e.allow(leased)
		}
		next := e.allow(e.request(1, ""))
		e.check(e.allow(e.request(1, "")).Settle(e.t.Context(), 60))
		e.check(next.Settle(e.t.Context(), 2))
	}
	_, err := e.Peek(e.t.Context(), e.request(1, "a"))
	e.check(err)
	e.reset()
}

// refuse makes calls until one is refused.
func (e *exercise) refuse() {
	for _, member := range []string{"a", "b", "c", "d", "e", "f"} {
		e.allow(e.request(e.capacity(), member))
	}
	e.reset()
}

func (e *exercise) capacity() int64 {
	if e.rule.Algorithm == ratelimit.LeakyBucket {
		return 1
	}
	return e.rule.Limit
}

func (e *exercise) reset() {
	_, err := e.Reset(e.t.Context(), e.request(1, "a"))
	e.check(err)
}

// wait takes places of calls that wait, charges another call before them, and gives the places back in their order, so that one of them leaves a
// free place for the next.
func (e *exercise) wait() {
	if e.rule.Distinct != "" || e.rule.Algorithm == ratelimit.SlidingCounter {
		return
	}
	e.allow(e.request(1, ""))
	if n := e.capacity() - 1; n > 0 {
		e.allow(e.request(n, ""))
	}
	first, second := e.reserve(), e.reserve()
	if e.rule.Algorithm == ratelimit.SlidingWindow && e.rule.Cron == "" {
		wider := e.request(1, "")
		wider.Rule.Limit *= 2
		e.allow(wider)
	}
	e.check(first.Refund(e.t.Context()))
	third := e.reserve()
	e.check(second.Refund(e.t.Context()))
	e.check(third.Refund(e.t.Context()))
	e.reset()
}

func (e *exercise) reserve() ratelimit.Decision {
	d, err := e.Reserve(e.t.Context(), e.request(1, ""))
	e.check(err)
	return d
}

// settings changes overrides, blocks and pauses, and reads the rules.
func (e *exercise) settings() {
	ctx := e.t.Context()
	limit := int64(3)
	e.check(e.Overrides().Set(ctx, "other", ratelimit.Override{Limit: &limit, Until: time.Now().Add(-time.Hour)}))
	_, err := e.Overrides().SetNew(ctx, "other", ratelimit.Override{Limit: &limit})
	e.check(err)
	e.check(e.Overrides().Clear(ctx, "other", ""))
	e.check(e.Block(ctx, time.Hour, e.request(1, "a")))
	e.check(e.Unblock(ctx, e.request(1, "a")))
	_, err = e.Rules(ctx)
	e.check(err)
}
