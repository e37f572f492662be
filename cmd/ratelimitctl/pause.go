package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// pause holds keys under the rules of a name.
func (t *tool) pause(ctx context.Context, args []string) error {
	if t.forTime == 0 || t.forTime > maxBlock {
		return misused(fmt.Sprintf("pause: -for: expected how long, up to %s, as in -for 1m", words(maxBlock)))
	}
	return t.changePauses(ctx, args, func(ctx context.Context, all []ratelimit.Request) error {
		return t.limiter.Pause(ctx, t.forTime, all...)
	})
}

// resume ends pauses.
func (t *tool) resume(ctx context.Context, args []string) error {
	return t.changePauses(ctx, args, func(ctx context.Context, all []ratelimit.Request) error { return t.limiter.Resume(ctx, all...) })
}

// changePauses changes pauses by the limiter, because those of some rules are kept beside their counts.
func (t *tool) changePauses(ctx context.Context, args []string, do func(context.Context, []ratelimit.Request) error) error {
	settings, requests, err := t.keySettings(ctx, fleet.Pause, args)
	if err != nil {
		return err
	}
	if len(requests) == 0 { // with -force
		for _, s := range settings {
			requests = append(requests, ratelimit.Request{Rule: ratelimit.Rule{Name: s.Rule, Limit: 1, Per: time.Minute}, Key: key.Shown(s.Key)})
		}
	}
	actor, err := t.actor()
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil {
		return err
	}
	each, all := len(requests)/len(settings), make([]edited, len(settings))
	for i, s := range settings {
		all[i] = edited{Rule: s.Rule, Key: key.Shown(s.Key), kind: fleet.Pause}
		if all[i].Before, err = t.pauseOf(ctx, requests[i*each:(i+1)*each]); err != nil {
			return err
		}
	}
	if err := do(ratelimit.WithActor(ctx, actor.By, actor.Reason), requests); err != nil {
		return err
	}
	for i := range all {
		if all[i].After, err = t.pauseOf(ctx, requests[i*each:(i+1)*each]); err != nil {
			return err
		}
	}
	where, err := t.whereInForce(ctx)
	if err != nil {
		return err
	}
	return t.print(all, t.withKept(append(t.editedLines(all), []string{where}))...)
}

// pauseOf returns the pause of a key, which is a setting or the marker of a rule with pause=. It is nil if there is none.
func (t *tool) pauseOf(ctx context.Context, requests []ratelimit.Request) (*fleet.Values, error) {
	for _, q := range requests {
		state, err := t.limiter.StateKey(q)
		if err != nil {
			return nil, err
		}
		for _, s := range t.sources(q.Rule.Name, state) {
			if s.Kind == fleet.Pause {
				return &s.Values, nil
			}
		}
		until, err := t.markedPause(ctx, q, state)
		if err != nil || !until.IsZero() {
			return &fleet.Values{Until: until}, err
		}
	}
	return nil, nil
}

// markedPause returns until when the marker of a rule with pause= pauses a key, or the zero time.
func (t *tool) markedPause(ctx context.Context, q ratelimit.Request, state string) (time.Time, error) {
	if !q.Rule.Pausable {
		return time.Time{}, nil
	}
	return t.marked(ctx, key.PauseOf(state))
}

// pausedBy returns the change that made the marked pause of a key, or nil if no change did that the store has.
func (t *tool) pausedBy(ctx context.Context, rule, state string, until time.Time) (*fleet.Change, error) {
	changes, err := t.fleet.Changes(ctx)
	parts, _ := key.Split(state)
	c := fleet.PauseOf(changes, settingName(rule), parts.Subject, until)
	if c != nil {
		c.Key = key.Shown(c.Key)
	}
	return c, err
}
