package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// block refuses a key under the rules of a name. The name of a further unnamed rule, such as pkg.Type.Method#2, blocks the key under all unnamed
// rules of the method.
func (t *tool) block(ctx context.Context, args []string, o options) error {
	if o.forTime == 0 {
		return misused("block: found no -for; expected one such as -for 1h")
	}
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	if err := t.limiter.Block(ctx, o.forTime, requests[0]); err != nil {
		return err
	}
	until := t.fleet.Now().Add(o.forTime)
	return t.print(map[string]time.Time{"until": until}, []string{"blocked until " + until.Format(time.DateTime)})
}

// unblock ends a block, and prints whether there was one.
func (t *tool) unblock(ctx context.Context, args []string, _ options) error {
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	before, err := t.limiter.Blocked(ctx)
	if err != nil {
		return err
	}
	if err := t.limiter.Unblock(ctx, requests[0]); err != nil {
		return err
	}
	name, _, _ := strings.Cut(args[0], "#")
	subject, err := t.subject(requests[0])
	if err != nil {
		return err
	}
	i := slices.IndexFunc(before, func(b ratelimit.Blocked) bool { return b.Rule == name && b.Key == key.Shown(subject) })
	lines := [][]string{{"it was not blocked"}}
	if i >= 0 {
		lines[0] = []string{fmt.Sprintf("no longer blocked; it was until %s", local(before[i].Until))}
		if by := before[i].By; by != "" {
			lines[0][0] += ", by " + by
		}
	}
	for _, q := range requests {
		until, err := t.ownBlock(ctx, q)
		if err != nil {
			return err
		}
		if until.After(t.fleet.Now()) {
			lines = append(lines, []string{fmt.Sprintf("the block= of rule %s still refuses it until %s; reset ends that", q.Rule.Name, local(until))})
		}
	}
	return t.print(map[string]bool{"blocked": false, "found": i >= 0}, lines...)
}

// subject returns the subject of a request in the form of keys.
func (t *tool) subject(q ratelimit.Request) (string, error) {
	state, err := t.limiter.StateKey(q)
	parts, _ := key.Split(state)
	return parts.Subject, err
}

// ownBlock returns until when a rule with Block refuses a key, or a time in the past if it does not.
func (t *tool) ownBlock(ctx context.Context, q ratelimit.Request) (time.Time, error) {
	if q.Rule.Block == 0 {
		return time.Time{}, nil
	}
	state, err := t.limiter.StateKey(q)
	if err != nil {
		return time.Time{}, err
	}
	text, err := t.client.Get(ctx, key.BlockOf(state)).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return time.UnixMicro(lua.BlockedUntil(text)), err
}
