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

// maxBlock is the longest block and the longest pause, as in ratelimit.Limiter.Block.
const maxBlock = 30 * 24 * time.Hour

// block refuses keys under the rules of a name. The name of a further unnamed rule, such as pkg.Type.Method#2, blocks them under all unnamed rules
// of the method.
func (t *tool) block(ctx context.Context, args []string) error {
	if err := t.checkFor("block", "1h"); err != nil {
		return err
	}
	return t.edit(ctx, fleet.Block, args, t.harmlessBlocks, func(ctx context.Context, all [][]ratelimit.Request) error {
		return t.limiter.Block(ctx, t.forTime, firstOfEach(all)...)
	})
}

// unblock ends blocks. It also says which of them a rule with block= goes on refusing.
func (t *tool) unblock(ctx context.Context, args []string) error {
	return t.edit(ctx, fleet.Block, args, t.blocksThatGoOn, func(ctx context.Context, all [][]ratelimit.Request) error {
		return t.limiter.Unblock(ctx, firstOfEach(all)...)
	})
}

// pause pauses keys under the rules of a name.
func (t *tool) pause(ctx context.Context, args []string) error {
	if err := t.checkFor("pause", "1m"); err != nil {
		return err
	}
	return t.edit(ctx, fleet.Pause, args, nil, func(ctx context.Context, all [][]ratelimit.Request) error {
		return t.limiter.Pause(ctx, t.forTime, slices.Concat(all...)...)
	})
}

// resume ends pauses.
func (t *tool) resume(ctx context.Context, args []string) error {
	return t.edit(ctx, fleet.Pause, args, nil, func(ctx context.Context, all [][]ratelimit.Request) error {
		return t.limiter.Resume(ctx, slices.Concat(all...)...)
	})
}

func (t *tool) checkFor(command, example string) error {
	if t.forTime == 0 || t.forTime > maxBlock {
		return misused(fmt.Sprintf("%s: -for: expected how long, up to %s, as in -for %s", command, words(maxBlock), example))
	}
	return nil
}

// edit begins or ends blocks or pauses by do. It prints what was and what is, and the notes of more unless that is nil. Both get the requests of
// each key under all rules.
func (t *tool) edit(ctx context.Context, kind fleet.Kind, args []string, more func(context.Context, [][]ratelimit.Request) ([][]string, error),
	do func(context.Context, [][]ratelimit.Request) error) error {
	keys, err := t.requestsFor(ctx, args)
	if err != nil {
		return err
	}
	actor, err := t.actor()
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil {
		return err
	}
	all := make([]edited, len(keys))
	for i, requests := range keys {
		all[i] = edited{Kind: kind, Rule: fleet.SettingName(args[0])}
		if all[i].Key, all[i].Before, err = t.settingOf(ctx, kind, requests); err != nil {
			return err
		}
	}
	if err := do(ratelimit.WithActor(ctx, actor.By, actor.Reason), keys); err != nil {
		return err
	}
	for i, requests := range keys {
		if _, all[i].After, err = t.settingOf(ctx, kind, requests); err != nil {
			return err
		}
	}
	var notes [][]string
	if more != nil {
		if notes, err = more(ctx, keys); err != nil {
			return err
		}
	}
	return t.printEdited(ctx, all, notes...)
}

// requestsFor returns, for each key of KEY or -keys, its requests under the rules of the name RULE.
func (t *tool) requestsFor(ctx context.Context, args []string) (all [][]ratelimit.Request, err error) {
	rules, err := t.findAll(ctx, fleet.SettingName(args[0]))
	if err != nil {
		return nil, err
	}
	keys, err := t.keysOf(argument(args, 1))
	if err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(rules, func(r ratelimit.UsedRule) bool { return r.Name != args[0] })
	for _, k := range keys {
		some, err := requests(rules, []string{k})
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			some = []ratelimit.Request{{Rule: anyOf(nil, fleet.SettingName(args[0])), Key: k}}
		}
		all = append(all, some)
	}
	return all, nil
}

// firstOfEach returns a request for each key. A block is one for all rules of a name.
func firstOfEach(all [][]ratelimit.Request) (first []ratelimit.Request) {
	for _, requests := range all {
		first = append(first, requests[0])
	}
	return first
}

// settingOf returns the key of requests as errors show it, and its block or its pause, or nil. A pause may be the marker of a rule with pause=.
func (t *tool) settingOf(ctx context.Context, kind fleet.Kind, requests []ratelimit.Request) (shown string, _ *fleet.Values, err error) {
	for _, q := range requests {
		subject, err := t.subject(q)
		if err != nil {
			return "", nil, err
		}
		shown = key.Shown(subject)
		for _, s := range t.sources(q.Rule.Name, subject) {
			if s.Kind == kind {
				return shown, &s.Values, nil
			}
		}
		if kind == fleet.Pause {
			until, err := t.marked(ctx, kind, q)
			if err != nil || !until.IsZero() {
				return shown, &fleet.Values{Until: until}, err
			}
		}
	}
	return shown, nil, nil
}

// harmlessBlocks returns a note if none of the requests is refused while its key is blocked. The mode of some keys may be overridden.
func (t *tool) harmlessBlocks(_ context.Context, all [][]ratelimit.Request) (note [][]string, err error) {
	for _, q := range slices.Concat(all...) {
		now, err := t.limiter.RuleFor(q)
		if err != nil || now.Mode == ratelimit.ModeEnforce {
			return nil, err
		}
		note = [][]string{harmlessNote(q.Rule.Name, now.Mode.String())}
	}
	return note, nil
}

// blocksThatGoOn returns a note for each request whose key is blocked by the block= of its rule.
func (t *tool) blocksThatGoOn(ctx context.Context, all [][]ratelimit.Request) (notes [][]string, err error) {
	for _, q := range slices.Concat(all...) {
		until, err := t.marked(ctx, fleet.Block, q)
		if err != nil {
			return nil, err
		}
		if !until.IsZero() {
			notes = append(notes, []string{fmt.Sprintf("the block= of rule %s still refuses %s until %s; reset ends that", q.Rule.Name, cmp.Or(q.Key, "everybody"), local(until))})
		}
	}
	return notes, nil
}

// marked returns until when the marker of a rule with block= or pause= blocks or pauses a key, or the zero time.
func (t *tool) marked(ctx context.Context, kind fleet.Kind, q ratelimit.Request) (until time.Time, err error) {
	if kind == fleet.Block && q.Rule.Block == 0 || kind == fleet.Pause && !q.Rule.Pausable {
		return until, nil
	}
	states, err := t.limiter.StateKeys(q)
	for _, state := range states {
		marker := key.BlockOf(state)
		if kind == fleet.Pause {
			marker = key.PauseOf(state)
		}
		text, err := t.client.Get(ctx, marker).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return until, err
		}
		if end := time.UnixMicro(lua.BlockedUntil(text)).UTC(); end.After(t.fleet.Now()) && end.After(until) {
			until = end
		}
	}
	return until, err
}

// pausedBy returns the change that made the marked pause of a key, or nil if no change did that the store has.
func (t *tool) pausedBy(ctx context.Context, rule, subject string, until time.Time) (*fleet.Change, error) {
	changes, err := t.fleet.Changes(ctx)
	c := fleet.PauseOf(changes, fleet.SettingName(rule), subject, until)
	if c != nil {
		c.Key = key.Shown(c.Key)
	}
	return c, err
}
