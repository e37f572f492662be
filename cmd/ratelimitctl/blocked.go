package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// blockedKey is a key that is blocked.
type blockedKey struct {
	Rule  string    `json:"rule"`
	Key   string    `json:"key"`
	Until time.Time `json:"until"`
	By    string    `json:"by,omitempty"`     // who set the block
	Begun bool      `json:"byRule,omitempty"` // a refusal by a rule with block= began the block
}

// blockedKeys is the output of blocked.
type blockedKeys struct {
	Blocked []blockedKey `json:"blocked"`
	More    string       `json:"more,omitempty"` // why there may be more blocked keys
}

// printBlocked prints the keys that are blocked, of one rule or of all.
func (t *tool) printBlocked(ctx context.Context, args []string, _ options) error {
	shown := blockedKeys{Blocked: []blockedKey{}}
	set, err := t.limiter.Blocked(ctx)
	if err != nil {
		return err
	}
	for _, b := range set {
		shown.Blocked = append(shown.Blocked, blockedKey{Rule: b.Rule, Key: b.Key, Until: b.Until, By: b.By})
	}
	begun, more, err := t.begunBlocks(ctx)
	if err != nil {
		return err
	}
	shown.Blocked, shown.More = append(shown.Blocked, begun...), more
	if len(args) > 0 {
		name, _, _ := strings.Cut(args[0], "#")
		shown.Blocked = slices.DeleteFunc(shown.Blocked, func(b blockedKey) bool { return b.Rule != name && b.Rule != args[0] })
		if len(shown.Blocked) == 0 {
			if _, err := t.find(ctx, args[0]); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(shown.Blocked, func(a, b blockedKey) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	return t.print(shown, shown.lines()...)
}

func (b *blockedKeys) lines() [][]string {
	lines := [][]string{{"RULE", "KEY", "UNTIL", "BY"}}
	for _, k := range b.Blocked {
		by := k.By
		if k.Begun {
			by = "the rule's block="
		}
		lines = append(lines, []string{k.Rule, cmp.Or(k.Key, "everybody"), local(k.Until), by})
	}
	if len(b.Blocked) == 0 {
		lines = [][]string{{"nobody is blocked"}}
	}
	if b.More != "" {
		lines = append(lines, []string{b.More})
	}
	return lines
}

// begunBlocks returns the keys that are blocked by rules with block=, and says why there may be more of them.
func (t *tool) begunBlocks(ctx context.Context) (found []blockedKey, more string, err error) {
	rules, err := t.rules(ctx)
	if err != nil {
		return nil, "", err
	}
	names := t.names(rules)
	var mu sync.Mutex
	look := func(ctx context.Context, server *redis.Client) error {
		some, missing, err := t.begunAt(ctx, server, names)
		mu.Lock()
		defer mu.Unlock()
		found, more = append(found, some...), cmp.Or(more, missing)
		return err
	}
	switch c := t.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, look)
	case *redis.Client:
		err = look(ctx, c)
	}
	return found, more, err
}

// begunAt is begunBlocks for one server.
func (t *tool) begunAt(ctx context.Context, server *redis.Client, names map[named]named) (found []blockedKey, missing string, err error) {
	prefix := key.Escape(t.prefix)
	p := &patient{UniversalClient: server, tool: t}
	keys, whole, err := p.scan(ctx, key.Blocks(pattern(prefix)), maxShownBlocks)
	switch {
	case err != nil && isDenied(err):
		return nil, "keys that the block= of a rule refuses are not listed: this user may not run SCAN", nil
	case err != nil:
		return nil, "", err
	case !whole:
		missing = fmt.Sprintf("there may be more keys that the block= of a rule refuses: at most %d of a server are listed, and about %d of its keys are searched", maxShownBlocks, maxScans*scanned)
	}
	slices.Sort(keys)
	p.each(ctx, slices.Compact(keys), func(pipe redis.Pipeliner, k string) { pipe.Get(ctx, k) }, func(k string, answer redis.Cmder) {
		until := time.UnixMicro(lua.BlockedUntil(answer.(*redis.StringCmd).Val()))
		parts, ok := key.Split(k)
		if !ok || !parts.IsBlock || !until.After(t.fleet.Now()) {
			return
		}
		name := strings.TrimPrefix(parts.Owner, prefix+":")
		if known, ok := names[named{name, parts.Tag}]; ok {
			name = known.Rule
		}
		found = append(found, blockedKey{Rule: name, Key: key.Shown(parts.Subject), Until: until, Begun: true})
	})
	return found, missing, nil
}

// maxShownBlocks bounds how many keys of one server are shown that rules with block= refuse.
const maxShownBlocks = 1000
