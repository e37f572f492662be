package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// maxBlock is the longest block, as in ratelimit.Limiter.Block.
const maxBlock = 30 * 24 * time.Hour

// block refuses keys under the rules of a name. The name of a further unnamed rule, such as pkg.Type.Method#2, blocks them under all unnamed rules
// of the method.
func (t *tool) block(ctx context.Context, args []string) error {
	if t.forTime == 0 || t.forTime > maxBlock {
		return misused(fmt.Sprintf("block: -for: expected how long, up to %s, as in -for 1h", words(maxBlock)))
	}
	settings, requests, err := t.keySettings(ctx, fleet.Block, args)
	if err != nil {
		return err
	}
	return t.change(ctx, edit{"block", settings, func(_, s *fleet.Setting) error {
		s.Until = t.fleet.Now().Add(t.forTime)
		return nil
	}}, func([]edited) (lines [][]string, err error) {
		for _, q := range requests {
			now, err := t.limiter.RuleFor(q) // the mode of some keys may be overridden
			if err != nil || now.Mode == ratelimit.ModeEnforce {
				return nil, err
			}
			lines = [][]string{harmlessNote(q.Rule.Name, now.Mode.String())}
		}
		return lines, nil
	})
}

// unblock ends blocks. It also says which of them a rule with block= goes on refusing.
func (t *tool) unblock(ctx context.Context, args []string) error {
	settings, requests, err := t.keySettings(ctx, fleet.Block, args)
	if err != nil {
		return err
	}
	return t.change(ctx, edit{"unblock", settings, clearIt}, func([]edited) (lines [][]string, err error) {
		for _, q := range requests {
			until, err := t.ownBlock(ctx, q)
			if err != nil {
				return nil, err
			}
			if !until.IsZero() {
				lines = append(lines, []string{fmt.Sprintf("the block= of rule %s still refuses %s until %s; reset ends that", q.Rule.Name, cmp.Or(q.Key, "everybody"), local(until))})
			}
		}
		return lines, nil
	})
}

// keySettings returns a block or a pause for each key, without its end, and the requests that they are for.
func (t *tool) keySettings(ctx context.Context, kind fleet.Kind, args []string) ([]*fleet.Setting, []ratelimit.Request, error) {
	rules, err := t.findAll(ctx, settingName(args[0]))
	if err != nil {
		return nil, nil, fmt.Errorf("%w, or use -force", err)
	}
	keys, err := t.keysOf(argument(args, 1))
	if err != nil {
		return nil, nil, err
	}
	exact := slices.DeleteFunc(slices.Clone(rules), func(r ratelimit.UsedRule) bool { return r.Name != args[0] })
	all, err := requests(exact, keys)
	if err != nil {
		return nil, nil, err
	}
	settings, err := t.settingsOf(kind, args[0], exact, keys)
	return settings, all, err
}

// ownBlock returns until when a rule with Block refuses a key, or the zero time if it does not.
func (t *tool) ownBlock(ctx context.Context, q ratelimit.Request) (time.Time, error) {
	if q.Rule.Block == 0 {
		return time.Time{}, nil
	}
	state, err := t.limiter.StateKey(q)
	if err != nil {
		return time.Time{}, err
	}
	return t.marked(ctx, key.BlockOf(state))
}

// marked returns the time in a marker, or the zero time if the marker is missing or over.
func (t *tool) marked(ctx context.Context, name string) (until time.Time, err error) {
	text, err := t.client.Get(ctx, name).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	if until = time.UnixMicro(lua.BlockedUntil(text)); !until.After(t.fleet.Now()) {
		until = time.Time{}
	}
	return until, err
}
