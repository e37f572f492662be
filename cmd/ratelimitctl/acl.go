package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/stats"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// The permissions that a limiter needs in addition to those of its decisions.
var (
	sharded    = []string{"CLUSTER|SLOTS"}
	scriptless = []string{
		"BITFIELD", "BITFIELD_RO", "DEL", "EXEC", "HSCAN", "MULTI", "PEXPIRETIME", "SET", "STRLEN", "TIME", "UNWATCH", "WATCH",
	}
	writing    = []string{"EXEC", "HDEL", "HGET", "HSET", "HSETNX", "MULTI", "PEXPIRE", "UNWATCH", "WATCH"} // by the limiter itself
	faster     = []string{"FCALL", "FUNCTION|LOAD"}
	warning    = []string{"INFO"}
	statistics = []string{"DEL", "PEXPIRE", "SET", "ZADD", "ZREMRANGEBYSCORE"}
)

// permissions are the commands that limiters run, by purpose.
type permissions struct {
	For        string   `json:"for"`      // which rules
	Required   []string `json:"required"` // for decisions under these rules
	Writing    []string `json:"writing"`
	Faster     []string `json:"faster"`
	Warning    []string `json:"warning"`
	Statistics []string `json:"statistics,omitempty"` // if they are in use
	Plain      []string `json:"plain,omitempty"`      // for package plain, if it can decide the rules
}

// printACL prints the permissions that suffice for the rules in use.
func (t *tool) printACL(ctx context.Context, _ []string, o options) error {
	rules, origin := t.permittedRules(ctx, o.all)
	p := permissions{For: origin, Writing: writing, Faster: faster, Warning: warning}
	if rules == nil || ratelimit.New(plain.New(t.client)).Check(rules...) == nil {
		p.Plain = scriptless
	}
	if rules == nil {
		rules = rulesOfAllKinds()
	}
	var err error
	if p.Required, err = redisstore.Commands(rules...); err != nil {
		return err
	}
	if t.isCluster() {
		p.Required, p.Faster = append(p.Required, sharded...), append(slices.Clone(faster), "COMMAND")
		slices.Sort(p.Required)
	}
	if t.client.Exists(ctx, stats.List(key.Escape(t.prefix))).Val() > 0 {
		p.Statistics = statistics
	}
	return t.print(p, t.aclLines(&p)...)
}

// permittedRules returns the rules to print permissions for, or nil for rules of all kinds. origin says in words which rules these are.
func (t *tool) permittedRules(ctx context.Context, all bool) (rules []ratelimit.Rule, origin string) {
	if all {
		return nil, "rules of all kinds"
	}
	used, err := t.limiter.Rules(ctx)
	for _, r := range append(used, t.listed...) {
		rules = append(rules, r.Rule)
	}
	switch {
	case err != nil && rules == nil:
		return nil, fmt.Sprintf("rules of all kinds, because the rules in use cannot be read: %v", err)
	case rules == nil:
		return nil, "rules of all kinds, because no limiter used a rule within a day, and there are none in -rules"
	}
	origin = counted(int64(len(used)), "rule") + " in use"
	if len(t.listed) > 0 {
		origin += fmt.Sprintf(" and %d of -rules", len(t.listed))
	}
	return rules, origin + `; rules of another kind may need more: "ratelimitctl acl -all" permits all kinds`
}

// rulesOfAllKinds returns rules that together need every permission that any rule needs.
func rulesOfAllKinds() []ratelimit.Rule {
	rules := []ratelimit.Rule{{Name: "any", Limit: 1, Per: time.Minute, Distinct: "{x}", Block: time.Minute}}
	for _, a := range ratelimit.Algorithms() {
		rule := ratelimit.Rule{Name: "any", Limit: 1, Algorithm: a, Per: time.Minute}
		if a == ratelimit.Calendar {
			rule.Per, rule.Cron = 0, "@daily"
		}
		rules = append(rules, rule)
	}
	return rules
}

// aclLines returns the command to run on the server, followed by comments with further permissions.
func (t *tool) aclLines(p *permissions) [][]string {
	lines := [][]string{{t.setUser(p.Required)}, {"# this suffices for decisions of " + p.For}}
	if t.isCluster() {
		lines = append(lines, []string{"# do so on every server of the cluster"})
	}
	more := func(what string, commands []string) {
		commands = slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return slices.Contains(p.Required, c) })
		if len(commands) > 0 {
			lines = append(lines, []string{"# " + what + " also:" + permitted(commands)})
		}
	}
	more("for overrides, blocks, and to be seen by ratelimitctl rules,", p.Writing)
	more("for redisstore.WithStats(), which is in use,", p.Statistics)
	more("for faster decisions", p.Faster)
	more("to log a warning if the server removes counts,", p.Warning)
	if p.Plain != nil {
		lines = append(lines, []string{"# for package redisstore/plain, which uses no scripts, instead:"}, []string{"# " + t.setUser(p.Plain)})
	}
	return lines
}

func (t *tool) isCluster() bool {
	_, is := t.client.(*redis.ClusterClient)
	return is
}

// setUser returns the command that creates a user who may run the given commands on keys of the prefix.
func (t *tool) setUser(commands []string) string {
	return "ACL SETUSER ratelimit on >PASSWORD resetkeys resetchannels ~" + pattern(key.Escape(t.prefix)) + ":* -@all" + permitted(commands)
}

func permitted(commands []string) (text string) {
	for _, c := range commands {
		text += " +" + strings.ToLower(c)
	}
	return text
}

// pattern returns the Redis pattern that matches a text. It matches a space with ?, because a permission cannot contain one.
func pattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, ` `, `?`).Replace(text)
}
