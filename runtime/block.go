package ratelimit

import (
	"context"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Block refuses the keys of the requests under their rules for d, up to 30 days, for all limiters of this prefix on the store. This limiter
// follows at once, the others within about two seconds. RetryAfter of a refusal is the rest of the block, by the store's clock. No call waits
// until the block ends. A call that already waits keeps its place: [Limiter.Pause] stops those, too. A request may have a Match in place of a
// Key, and a glob as the Name of its rule. Of several blocks of a key the last end counts. Only the Name, Key and Hash of a rule matter. A rule in shadow or trigger mode still refuses nothing. The store also records the actor of [WithActor], or the user of
// [WithUserID], who set the block. More than 100 keys are set one part after the other. For example, if the store fails while 1,000 keys are
// blocked, the first 300 of them may be blocked, and Block returns an error: call it again.
//
// The error is a *RuleError if there is no room for more (see [Overrides]), if there is no request, if a rule has no name, or if d is
// not above 0 or is longer than 30 days. The other errors are those of [Limiter.Reset].
func (l *Limiter) Block(ctx context.Context, d time.Duration, requests ...Request) error {
	return l.changeBlocks(ctx, requests, fleet.Edit{What: "block", For: d})
}

// Blocked is a key that [Limiter.Block] refuses, or all keys that a Match names. For example, kim blocked 203.0.113.7 at 17:00 for an hour: Rule is "login", Key
// "203.0.113.7", Until 18:00, By "kim", and Reason what kim said.
type Blocked struct {
	Rule   string    // the rule's name; for unnamed rules that of their method; or a glob such as shop.*
	Key    string    // as in Violation
	Until  time.Time // by the store's clock
	By     string    // who set the block, as [WithActor] or [WithUserID] said
	Reason string    // why
	Match  string    // in place of Key: a network, or a text such as ann*, escaped like Key
}

// Blocked returns the keys that [Limiter.Block] refuses now, whichever process blocked them. They are sorted by rule and key. Blocked leaves
// out keys that are refused by the Block of a rule. If the store cannot be read, the slice is nil, and the error is a *StoreError or wraps the
// context's.
func (l *Limiter) Blocked(ctx context.Context) ([]Blocked, error) {
	settings, err := l.machine().Fleet().List(ctx)
	if err != nil {
		return nil, l.machine().StoreError(ctx, "", err)
	}
	all := []Blocked{}
	for _, s := range settings {
		if s.Kind == fleet.Block && !s.EndedAt(l.machine().Fleet().Now()) {
			b := Blocked{Rule: s.Rule, Key: key.Shown(s.Key), Until: s.Until, By: s.By, Reason: s.Reason}
			if s.Match {
				b.Key, b.Match = "", s.Key
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// Unblock ends the blocks that [Limiter.Block] set. A key that is not blocked is no error. The errors are those of Block.
func (l *Limiter) Unblock(ctx context.Context, requests ...Request) error {
	return l.changeBlocks(ctx, requests, fleet.Edit{What: "unblock"})
}

func (l *Limiter) changeBlocks(ctx context.Context, requests []Request, e fleet.Edit) (err error) {
	if e.Settings, err = l.keySettings(ctx, fleet.Block, requests, e); err == nil {
		_, err = l.changeSettings(ctx, e)
	}
	return err
}

// keySettings returns a setting of a kind for the key of each request, in the name of the user of ctx. They have no end yet. An edit that is
// named after the kind, such as block, sets them. Another one, such as unblock, clears them.
func (l *Limiter) keySettings(ctx context.Context, kind fleet.Kind, requests []Request, e fleet.Edit) ([]*fleet.Setting, error) {
	cleared := e.What != string(kind)
	switch {
	case len(requests) == 0:
		return nil, noRequests()
	case !cleared && (e.For <= 0 || e.For > maxBlock):
		return nil, requests[0].Rule.wrong(e.What, "found %s; expected more than 0, up to %s", e.For, maxBlock)
	}
	by, _ := ctx.Value(decide.UserID).(string)
	settings := make([]*fleet.Setting, len(requests))
	for i := range requests {
		s, err := l.keySetting(kind, cleared, &requests[i])
		if err != nil {
			return nil, err
		}
		s.By = printable.Text(by, fleet.MaxSaid)
		settings[i] = s
	}
	return settings, nil
}

// keySetting returns a setting of a kind for the key, or the Match, of a request, or clears it.
func (l *Limiter) keySetting(kind fleet.Kind, cleared bool, r *Request) (*fleet.Setting, error) {
	isGlob := fleet.IsGlob(r.Rule.Name)
	err := r.Rule.checkName()
	if isGlob {
		err = checkNameOrGlob(r.Rule.Name)
	}
	switch {
	case err != nil:
		return nil, err
	case r.Rule.Name == "":
		return nil, r.Rule.wrong("name", "found none; expected the name of the rule to %s", kind)
	case r.Key != "" && r.Match != "":
		return nil, r.Rule.wrong("match", "found a key as well; expected one of the two")
	case r.Key == "" && r.Match == "" && isGlob:
		return nil, r.Rule.wrong("name", "found a glob without a key; expected a key or a match, or the name of a rule")
	case r.Key == "" && r.Match == "" && r.Rule.Key != "":
		return nil, &KeyError{Rule: r.Rule.Name, Expr: r.Rule.Key, Reason: "the key is empty"}
	}
	s := &fleet.Setting{Kind: kind, Rule: fleet.SettingName(r.Rule.Name), Cleared: cleared}
	if r.Match != "" {
		return s, l.match(s, r.Match, r.Rule.Hash == HashSubject && !isGlob)
	}
	s.Key = l.subject(&r.Rule, r.Key)
	return s, nil
}

func noRequests() error {
	return &RuleError{Argument: "requests", Reason: "found none; expected one or more"}
}
