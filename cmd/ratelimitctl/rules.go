package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

func (t *tool) printRules(ctx context.Context, _ []string, _ options) error {
	rules, err := t.limiter.Rules(ctx)
	if err != nil {
		return err
	}
	lines := [][]string{{"RULE", "LIMIT", "WINDOW", "KEY", "SEEN"}}
	for _, r := range rules {
		limit := strconv.FormatInt(r.Limit, 10)
		if r.Varies {
			limit = "varies"
		}
		lines = append(lines, []string{r.Name, limit, r.Window(), r.Key, r.Seen.Local().Format(time.DateTime)})
	}
	return t.print(rules, lines...)
}

// find returns requests for a key under all rules of a name.
func (t *tool) find(ctx context.Context, args []string) ([]ratelimit.Request, error) {
	used, err := t.limiter.Rules(ctx)
	if err != nil {
		return nil, err
	}
	key := ""
	if len(args) > 1 {
		key = args[1]
	}
	var requests []ratelimit.Request
	for _, r := range used {
		switch {
		case r.Name != args[0]:
		case r.Key != "" && key == "":
			return nil, misused(fmt.Sprintf("rule %s counts by %s: name a key", r.Name, r.Key))
		default:
			requests = append(requests, ratelimit.Request{Rule: r.Rule, Key: key})
		}
	}
	if len(requests) == 0 {
		return nil, fmt.Errorf("no limiter of prefix %q has used a rule %q within a day; ratelimitctl rules lists those that were", t.prefix, args[0])
	}
	return requests, nil
}

func (t *tool) inspect(ctx context.Context, args []string, _ options) error {
	requests, err := t.find(ctx, args)
	if err != nil {
		return err
	}
	if err := t.limiter.Ping(ctx); err != nil { // reads overrides and blocks
		return err
	}
	lines, quotas := [][]string{{"RULE", "WINDOW", "USED", "LIMIT", "REMAINING", "RESET IN", "RETRY AFTER"}}, []ratelimit.Quota{}
	for _, q := range requests {
		d, err := t.limiter.Peek(ctx, q)
		if err != nil {
			return err
		}
		for _, quota := range d.Quotas {
			quotas = append(quotas, quota)
			lines = append(lines, []string{
				quota.Rule, quota.Window, strconv.FormatInt(quota.Limit-quota.Remaining, 10), strconv.FormatInt(quota.Limit, 10),
				strconv.FormatInt(quota.Remaining, 10), words(quota.Reset), words(d.RetryAfter),
			})
		}
	}
	return t.print(quotas, lines...)
}

func words(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Millisecond).String()
}

func (t *tool) reset(ctx context.Context, args []string, _ options) error {
	requests, err := t.find(ctx, args)
	if err != nil {
		return err
	}
	n, err := t.limiter.Reset(ctx, requests...)
	if err != nil {
		return err
	}
	return t.print(map[string]int{"forgotten": n}, []string{fmt.Sprintf("%d counts forgotten", n)})
}

func (t *tool) block(ctx context.Context, args []string, o options) error {
	if o.forTime == 0 {
		return misused("block: found no -for; expected one such as -for 1h")
	}
	if err := t.limiter.Block(ctx, o.forTime, ratelimit.Request{Rule: ratelimit.Rule{Name: args[0]}, Key: args[1]}); err != nil {
		return err
	}
	until := time.Now().Add(o.forTime)
	return t.print(map[string]time.Time{"until": until}, []string{"blocked until " + until.Format(time.DateTime)})
}

func (t *tool) unblock(ctx context.Context, args []string, _ options) error {
	if err := t.limiter.Unblock(ctx, ratelimit.Request{Rule: ratelimit.Rule{Name: args[0]}, Key: args[1]}); err != nil {
		return err
	}
	return t.print(map[string]bool{"blocked": false}, []string{"not blocked"})
}

// required are the commands without which a limiter does not decide.
func required() []string {
	return append(lua.Commands(), "EVAL", "EVALSHA", "HGETALL")
}

func (t *tool) printACL(context.Context, []string, options) error {
	commands := required()
	slices.Sort(commands)
	line := "ACL SETUSER ratelimit on >PASSWORD resetkeys resetchannels ~" + t.prefix + ":* -@all"
	for _, c := range commands {
		line += " +" + strings.ToLower(c)
	}
	return t.print(commands,
		[]string{line}, []string{"# for faster decisions also: +fcall +function|load"},
		[]string{"# to be listed by ratelimitctl rules, and for overrides and blocks, also: +hset +hsetnx +hdel +pexpire"})
}
