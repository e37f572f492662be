package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// block is an entry in the store. Its subject is refused whatever it has used.
type block struct {
	ruleSubject
	Until time.Time `json:"until"`
	By    string    `json:"by,omitempty"`
}

// ruleSubject is a subject under the rules of one name.
type ruleSubject struct{ rule, subject string }

// Block refuses the keys of the requests under their rules for d, up to 30 days, for all limiters of this prefix on the store. This limiter
// follows at once, the others within about two seconds. RetryAfter of a refusal is the rest of the block, by this process's clock. No call
// waits until the block ends. Only the Name, Key and Hash of a rule matter. A rule in shadow or trigger mode still refuses nothing.
// The store also records the user of [WithUserID], who set the block.
//
// The error is a *RuleError if more than 1,000 keys would be blocked at once, if there is no request, if a rule has no name, or if d is
// not above 0 or is longer than 30 days. The other errors are those of [Limiter.Reset].
func (l *Limiter) Block(ctx context.Context, d time.Duration, requests ...Request) error {
	fields, err := l.blockFields(requests)
	switch {
	case err != nil:
		return err
	case d <= 0 || d > maxBlock:
		return requests[0].Rule.wrong("block", "found %s; expected more than 0, up to %s", period.Format(d), period.Format(maxBlock))
	}
	by, _ := ctx.Value(bridge.UserID).(string)
	text, err := json.Marshal(block{Until: l.now().Add(d).UTC(), By: printable.Text(by, maxBy)})
	if err != nil {
		return err
	}
	return l.settings.write(ctx, func() error {
		over := func(field, text string) bool {
			b, err := parseBlock(field, text)
			return err != nil || !b.Until.After(l.now())
		}
		if err := l.settings.makeRoom(ctx, listBlocked, over, fields...); err != nil {
			return err
		}
		for _, field := range fields {
			if _, err := l.store.Set(ctx, l.list(listBlocked), field, string(text), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// Blocked is a key that [Limiter.Block] refuses.
type Blocked struct {
	Rule  string    // the rule's name; for unnamed rules that of their method
	Key   string    // as in Violation
	Until time.Time // by the clock of the process that set the block
	By    string    // who set the block, as [WithUserID] said
}

// Blocked returns the keys that [Limiter.Block] refuses now, whichever process blocked them. They are sorted by rule and key. Blocked leaves
// out keys that are refused by the Block of a rule. If the store has more than 2,000 blocks, limiters do not follow them: Blocked returns
// some of them, and an error. If the store cannot be read, the slice is nil, and the error is a *StoreError or wraps the context's.
func (l *Limiter) Blocked(ctx context.Context) ([]Blocked, error) {
	texts, err := l.settings.texts(ctx, listBlocked)
	if err != nil {
		return nil, storeError(ctx, "", err)
	}
	all := []Blocked{}
	blocks, _ := parseAll(texts, parseBlock)
	for _, b := range blocks {
		if b.Until.After(l.now()) {
			all = append(all, Blocked{b.rule, key.Shown(b.subject), b.Until, b.By})
		}
	}
	slices.SortFunc(all, func(a, b Blocked) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	return all, tooLong(listBlocked, texts)
}

// Unblock ends the blocks that [Limiter.Block] set. A key that is not blocked is no error. The errors are those of Block.
func (l *Limiter) Unblock(ctx context.Context, requests ...Request) error {
	fields, err := l.blockFields(requests)
	if err != nil {
		return err
	}
	return l.settings.write(ctx, func() error { return l.store.Unset(ctx, l.list(listBlocked), fields...) })
}

// blockFields returns the names under which the store keeps the blocks of requests.
func (l *Limiter) blockFields(requests []Request) ([]string, error) {
	if len(requests) == 0 {
		return nil, &RuleError{Argument: "requests", Reason: "found none; expected one or more"}
	}
	fields := make([]string, len(requests))
	for i := range requests {
		r := &requests[i]
		switch err := r.Rule.checkName(); {
		case err != nil:
			return nil, err
		case r.Rule.Name == "":
			return nil, r.Rule.wrong("name", "found none; expected the name of the rule to block")
		case r.Key == "" && r.Rule.Key != "":
			return nil, &KeyError{Rule: r.Rule.Name, Expr: r.Rule.Key, Reason: "the key is empty"}
		}
		name := r.Rule.Name
		if r.Rule.unnamed {
			name, _, _ = strings.Cut(name, "#")
		}
		fields[i] = name + ":{" + l.subject(&r.Rule, r.Key) + "}"
	}
	return fields, nil
}

// parseBlock parses a block from its field and text in the store.
func parseBlock(field, text string) (b block, err error) {
	name, subject, ok := strings.Cut(strings.TrimSuffix(field, "}"), ":{")
	if err = decode(text, &b); err == nil && (!ok || len(field) > maxSettingBytes || b.Until.IsZero()) {
		err = errors.New("found no rule, key or end; expected rule:{key} with until")
	}
	if err != nil {
		err = malformed("block of", field, err)
	}
	b.ruleSubject = ruleSubject{name, subject}
	return b, err
}

// blockLeft returns how long a subject is still blocked.
func (s *settings) blockLeft(rule *prepared, subject string) time.Duration {
	in := s.current.Load()
	if in == nil || rule.Mode != ModeEnforce {
		return 0
	}
	until, ok := in.blocks[ruleSubject{rule.Name, subject}]
	if !ok {
		return 0
	}
	return max(0, until.Sub(s.limiter.now()))
}
