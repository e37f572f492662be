package ratelimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// maxBlocks is how many subjects may be blocked at once.
const maxBlocks = engine.MaxSettings

// blocks are the subjects that are refused without asking what they have used.
type blocks struct {
	table atomic.Pointer[map[ruleSubject]time.Time] // until when; nil if nobody is blocked
	texts map[string]string                         // what the store said the last time
}

// ruleSubject is a subject under the rules of a name.
type ruleSubject struct{ rule, subject string }

// blockText is a block in the store.
type blockText struct {
	Until time.Time `json:"until"`
	By    string    `json:"by,omitempty"`
}

// Block refuses the keys of the requests under their rules for d, up to 30 days, for all limiters of this prefix on the store. This limiter
// follows at once, the others within about two seconds. A refusal says in RetryAfter how long the block still lasts, by this process's
// clock; no call waits for its end. Only the Name, Key and Hash of a rule matter. A rule in shadow or trigger mode still refuses nothing.
// The store also keeps the user of [WithUserID], as the one who set the block.
//
// At most 1,000 keys are blocked at once. It is a *RuleError if there would be more, if there is no request, if a rule has no name, or
// if d is not above 0 and at most 30 days. The other errors are those of [Limiter.Reset].
func (l *Limiter) Block(ctx context.Context, d time.Duration, requests ...Request) error {
	fields, err := l.blockFields(requests)
	switch {
	case err != nil:
		return err
	case d <= 0 || d > maxBlock:
		return requests[0].Rule.wrong("block", "found %s; expected up to %s", period.Format(d), period.Format(maxBlock))
	}
	by, _ := ctx.Value(bridge.UserID).(string)
	text, err := json.Marshal(blockText{Until: l.now().Add(d).UTC(), By: printable.Text(by, maxBy)})
	if err != nil {
		return err
	}
	return l.overrides.write(ctx, func() error {
		if err := l.makeRoom(ctx, fields); err != nil {
			return err
		}
		for _, field := range fields {
			if _, err := l.store.Set(ctx, l.list(listBlocked), field, string(text), false); err != nil {
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

// Blocked returns the keys that [Limiter.Block] refuses now, whichever process blocked them, in the order of rules and keys. It leaves out
// keys that are refused by the Block of a rule. The error is a *StoreError, or wraps the context's.
func (l *Limiter) Blocked(ctx context.Context) ([]Blocked, error) {
	texts, err := l.store.Settings(ctx, l.list(listBlocked))
	if err != nil {
		return nil, storeError(ctx, "", err)
	}
	var all []Blocked
	for field, text := range texts {
		if of, b, err := parseBlock(field, text); err == nil && b.Until.After(l.now()) {
			all = append(all, Blocked{of.rule, key.Shown(of.subject), b.Until, b.By})
		}
	}
	slices.SortFunc(all, func(a, b Blocked) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	return all, nil
}

// Unblock ends what [Limiter.Block] began. A key that is not blocked is no error. The errors are those of Block.
func (l *Limiter) Unblock(ctx context.Context, requests ...Request) error {
	fields, err := l.blockFields(requests)
	if err != nil {
		return err
	}
	return l.overrides.write(ctx, func() error {
		for _, field := range fields {
			if err := l.store.Unset(ctx, l.list(listBlocked), field); err != nil {
				return err
			}
		}
		return nil
	})
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

// makeRoom removes the blocks that are over, and returns an error if there is no room for those to come.
func (l *Limiter) makeRoom(ctx context.Context, fields []string) error {
	texts, err := l.store.Settings(ctx, l.list(listBlocked))
	if err != nil {
		return err
	}
	all := make(map[string]bool, len(texts)+len(fields))
	for _, field := range fields {
		all[field] = true
	}
	for field, text := range texts {
		if _, b, err := parseBlock(field, text); err == nil && b.Until.After(l.now()) {
			all[field] = true
		} else if err := l.store.Unset(ctx, l.list(listBlocked), field); err != nil {
			return err
		}
	}
	if len(all) > maxBlocks {
		reason := fmt.Sprintf("found %d keys that would be blocked; expected at most %d", len(all), maxBlocks)
		return &RuleError{Argument: "block", Reason: reason}
	}
	return nil
}

// parseBlock reads a block from its field and text in the store.
func parseBlock(field, text string) (of ruleSubject, b blockText, err error) {
	name, subject, ok := strings.Cut(strings.TrimSuffix(field, "}"), ":{")
	switch {
	case !ok || len(field) > maxOverrideText:
		err = errors.New("the field is no rule and key; expected rule:{key}")
	case len(text) > maxOverrideText:
		err = fmt.Errorf("found %d bytes; expected at most %d", len(text), maxOverrideText)
	default:
		err = json.Unmarshal([]byte(text), &b)
	}
	return ruleSubject{name, subject}, b, err
}

// read follows the blocks in the store. The caller makes sure that only one goroutine reads.
func (b *blocks) read(ctx context.Context, l *Limiter) error {
	texts, err := l.store.Settings(ctx, l.list(listBlocked))
	switch {
	case err != nil:
		return err
	case len(texts) > maxBlocks:
		return errManyBlocks
	case maps.Equal(texts, b.texts) && b.table.Load() == nil:
		return nil
	}
	table := make(map[ruleSubject]time.Time, len(texts))
	for field, text := range texts {
		of, block, err := parseBlock(field, text)
		if err != nil && b.texts[field] != text {
			l.logger.Warn("a block is not understood; it is not followed", "block", oneLine(field), "err", oneLine(err.Error()))
		}
		if err == nil && block.Until.After(l.now()) {
			table[of] = block.Until
		}
	}
	b.texts = texts
	if len(table) == 0 {
		b.table.Store(nil)
	} else {
		b.table.Store(&table)
	}
	return nil
}

// left returns how long a subject is still blocked.
func (b *blocks) left(l *Limiter, rule *prepared, subject string) time.Duration {
	table := b.table.Load()
	if table == nil || rule.Mode != ModeEnforce {
		return 0
	}
	until, ok := (*table)[ruleSubject{rule.Name, subject}]
	if !ok {
		return 0
	}
	return max(0, until.Sub(l.now()))
}
