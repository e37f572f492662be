package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// blockedKeys is the output of blocked.
type blockedKeys struct {
	Blocked []setting `json:"blocked"`        // each has the mode of its rule, if that refuses nobody
	More    string    `json:"more,omitempty"` // why there may be more blocked keys
}

// printBlocked prints the keys that are blocked, of one rule or of all.
func (t *tool) printBlocked(ctx context.Context, args []string) error {
	set, err := t.inForce(ctx, fleet.Block, args)
	if set == nil {
		return err
	}
	shown := blockedKeys{Blocked: []setting{}}
	for _, s := range set {
		shown.Blocked = append(shown.Blocked, shownSetting(s))
	}
	rules, err := t.usedRules(ctx)
	if err != nil {
		return err
	}
	names := t.names(rules)
	begun, err := eachServer(ctx, t, func(ctx context.Context, s *server) (blockedKeys, error) { return t.begunAt(ctx, s, names) })
	if err != nil {
		return err
	}
	for _, at := range begun {
		some := slices.DeleteFunc(at.Blocked, func(b setting) bool {
			return len(args) > 0 && b.Rule != args[0] && fleet.SettingName(b.Rule) != args[0]
		})
		shown.Blocked, shown.More = append(shown.Blocked, some...), cmp.Or(shown.More, at.More)
	}
	modes := t.harmless(rules)
	for i := range shown.Blocked {
		shown.Blocked[i].Mode = modes[fleet.SettingName(shown.Blocked[i].Rule)]
	}
	slices.SortStableFunc(shown.Blocked, func(a, b setting) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	return cmp.Or(t.print(shown, t.withKept(shown.lines(t.nothing("nobody is blocked")))...), t.malformed())
}

// harmless returns the modes of those rules that refuse nobody, by the names that settings use. All rules of a name must be so.
func (t *tool) harmless(rules []ratelimit.UsedRule) map[string]string {
	modes, refuse := map[string]string{}, map[string]bool{}
	for _, r := range rules {
		now, err := t.limiter.RuleFor(ratelimit.Request{Rule: r.Rule})
		if err != nil || now.Mode == ratelimit.ModeEnforce {
			refuse[fleet.SettingName(r.Name)] = true
			continue
		}
		modes[fleet.SettingName(r.Name)] = now.Mode.String()
	}
	maps.DeleteFunc(modes, func(name, _ string) bool { return refuse[name] })
	return modes
}

// harmlessNote says that the blocks of a rule have no effect.
func harmlessNote(rule, mode string) []string {
	return []string{fmt.Sprintf("%s is in mode %s: its calls would be refused, and pass", rule, mode)}
}

// lines are the table, or the text none if nobody is blocked.
func (b *blockedKeys) lines(none string) [][]string {
	lines, notes := [][]string{{"RULE", "KEY", "UNTIL", "SET BY", "SET AT", "REASON"}}, [][]string(nil)
	for _, k := range b.Blocked {
		by := k.By
		if k.Begun {
			by = "the rule's block="
		}
		lines = append(lines, []string{k.Rule, cmp.Or(k.Key, "everybody"), local(k.Until), by, local(k.At), k.Reason})
		if note := harmlessNote(k.Rule, k.Mode); k.Mode != "" && !slices.ContainsFunc(notes, func(n []string) bool { return n[0] == note[0] }) {
			notes = append(notes, note)
		}
	}
	if len(b.Blocked) == 0 {
		lines = [][]string{{none}}
	}
	if b.More != "" {
		notes = append(notes, []string{b.More})
	}
	return append(lines, notes...)
}

// begunAt returns the keys of one server that are blocked by rules with block=, and says why there may be more of them.
func (t *tool) begunAt(ctx context.Context, s *server, names map[traffic.Named]traffic.Known) (begun blockedKeys, err error) {
	prefix := key.Escape(t.prefix)
	keys, whole, err := s.scan(ctx, key.Blocks(pattern(prefix)), maxShownBlocks)
	switch {
	case err != nil && isDenied(err):
		return blockedKeys{More: "keys that the block= of a rule refuses are not listed: this user may not run SCAN"}, nil
	case err != nil:
		return begun, err
	case !whole:
		begun.More = fmt.Sprintf("there may be more keys that the block= of a rule refuses: at most %d of a server are listed, and about %d of its keys are searched", maxShownBlocks, maxScans*scanned)
	}
	slices.Sort(keys)
	s.each(ctx, slices.Compact(keys), func(pipe redis.Pipeliner, k string) { pipe.Get(ctx, k) }, func(k string, answer redis.Cmder) {
		until := time.UnixMicro(lua.BlockedUntil(answer.(*redis.StringCmd).Val())).UTC()
		parts, ok := key.Split(k)
		if !ok || !parts.IsBlock || !until.After(t.fleet.Now()) {
			return
		}
		name := strings.TrimPrefix(parts.Owner, prefix+":")
		name = cmp.Or(traffic.RuleOf(traffic.Named{Rule: name, Window: parts.Tag}, names), name)
		begun.Blocked = append(begun.Blocked, setting{Kind: fleet.Block, Rule: name, Key: key.Shown(parts.Subject), Begun: true, Values: fleet.Values{Until: until}})
	})
	return begun, nil
}

// maxShownBlocks bounds how many keys of one server are shown that rules with block= refuse.
const maxShownBlocks = 1000
