package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// The permissions that a limiter needs in addition to those of its decisions.
var (
	sharded    = []string{"CLUSTER|SLOTS"}
	fromMaster = []string{"EXEC", "MULTI"} // of clients that read from replicas: a transaction reads from the master
	scriptless = []string{
		"BITFIELD", "BITFIELD_RO", "DEL", "EXEC", "HMGET", "HSCAN", "MGET", "MULTI", "PEXPIRETIME", "SET", "STRLEN", "TIME", "UNWATCH", "WATCH",
		"ZRANGEBYSCORE",
	}
	seen       = []string{"HDEL", "HEXISTS", "HLEN", "HSET", "PEXPIRE"}
	settings   = []string{"HDEL", "HSET", "LPUSH", "LTRIM", "PERSIST", "PEXPIRE", "SET", "ZADD", "ZREM"} // inside a script; plain has a transaction
	operating  = []string{"GET", "INFO", "LATENCY|LATEST", "LRANGE", "MEMORY|USAGE", "PTTL", "SCAN"}
	examining  = []string{"ACL|LOG", "CONFIG|GET", "SLOWLOG|GET"} // these show what other users do
	faster     = []string{"FCALL", "FUNCTION|LOAD"}
	warning    = []string{"INFO"}
	statistics = []string{"HINCRBY", "HLEN", "PEXPIRE", "SET"}
)

// permissions are the commands that limiters run, by purpose.
type permissions struct {
	For        string   `json:"for"`                // which rules
	Required   []string `json:"required"`           // for decisions under these rules
	Seen       []string `json:"seen"`               // to be seen by this tool
	Settings   []string `json:"settings,omitempty"` // with -settings and -operator
	Operator   []string `json:"operator,omitempty"` // with -operator
	Doctor     []string `json:"doctor,omitempty"`   // with -operator, for all checks of doctor
	Faster     []string `json:"faster"`
	Warning    []string `json:"warning"`
	Statistics []string `json:"statistics,omitempty"` // if they are in use, and with -all
	Plain      []string `json:"plain,omitempty"`      // for package plain, if it can decide the rules
}

// printACL prints the permissions that suffice for the rules in use.
func printACL(ctx context.Context, s *session) error {
	rules, origin := s.permittedRules(ctx)
	p := permissions{For: origin, Seen: seen, Faster: faster, Warning: warning}
	if s.settings || s.operator {
		p.Settings = settings
	}
	if s.operator {
		p.Operator, p.Doctor = operating, examining
		if s.isCluster() {
			p.Operator = union(operating, []string{"CLUSTER|INFO"})
		}
	}
	if rules == nil || ratelimit.New(plain.New(s.client)).Check(rules...) == nil {
		p.Plain = scriptless
	}
	if rules == nil {
		rules = rulesOfAllKinds()
	}
	var err error
	if p.Required, err = redisstore.Commands(rules...); err != nil {
		return err
	}
	if s.isCluster() {
		p.Required, p.Seen = union(p.Required, sharded), union(seen, fromMaster)
	}
	if counting, _ := s.prefix.Publishers(ctx); s.all || counting > 0 {
		p.Statistics = statistics
	}
	return s.print(p, s.aclLines(&p)...)
}

// permittedRules returns the rules to print permissions for, or nil for rules of all kinds. origin says in words which rules these are.
func (s *session) permittedRules(ctx context.Context) (rules []ratelimit.Rule, origin string) {
	if s.all {
		return nil, "rules of all kinds"
	}
	used, err := s.limiter.Rules(ctx)
	for _, r := range append(used, s.listed...) {
		rules = append(rules, r.Rule)
	}
	switch {
	case err != nil && rules == nil:
		return nil, fmt.Sprintf("rules of all kinds, because the rules in use cannot be read: %v", err)
	case rules == nil:
		return nil, "rules of all kinds, because no limiter used a rule within a day, and there are none in -rules"
	}
	origin = operate.Count(len(used), "rule") + " in use"
	if len(s.listed) > 0 {
		origin += fmt.Sprintf(" and %d of -rules", len(s.listed))
	}
	return rules, origin + `; rules of another kind may need more: "ratelimitctl acl -all" permits all kinds`
}

// rulesOfAllKinds returns rules that together need every permission that any rule needs.
func rulesOfAllKinds() []ratelimit.Rule {
	rules := []ratelimit.Rule{
		{Name: "any", Limit: 1, Per: time.Minute, Distinct: "{x}", Block: time.Minute}, {Name: "any", Limit: 1_000_000, Per: time.Minute},
	}
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
func (s *session) aclLines(p *permissions) [][]string {
	all := union(p.Required, p.Seen, p.Settings, p.Operator, p.Faster) // without the last ones, each limiter logs that it decides slower
	if s.all {
		all = union(all, p.Statistics)
	}
	lines := [][]string{{s.setUser(all, len(p.Settings) > 0)}, {"# this suffices for decisions of " + p.For}}
	if p.Settings == nil {
		lines = append(lines, []string{"# -settings is for programs that make overrides, blocks and pauses, and -operator for this tool"})
	}
	if s.isCluster() {
		lines = append(lines, []string{"# do so on every server of the cluster"})
	}
	more := func(what string, commands []string) {
		commands = slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return slices.Contains(all, c) })
		if len(commands) > 0 {
			lines = append(lines, []string{"# " + what + " also:" + permitted(commands)})
		}
	}
	more("for all checks of doctor, which show what other users do,", p.Doctor)
	more("for redisstore.WithStats(), which is in use,", p.Statistics)
	more("to log a warning if the server removes counts,", p.Warning)
	if p.Plain != nil {
		lines = append(lines, []string{"# for package redisstore/plain, which uses no scripts, instead:"}, []string{"# " + s.setUser(union(p.Plain, p.Seen, p.Settings, p.Operator), len(p.Settings) > 0)})
	}
	return lines
}

func (s *session) isCluster() bool {
	_, is := s.client.(*redis.ClusterClient)
	return is
}

// setUser returns the command that creates a user who may run the given commands on keys of the prefix. Only one who changes settings may write
// them.
func (s *session) setUser(commands []string, changes bool) string {
	keys, settings := key.Pattern(s.prefix.Name()), " %R~"
	if changes {
		settings = " ~"
	}
	return "ACL SETUSER ratelimit on >PASSWORD resetkeys resetchannels ~" + keys + ":* ~" + keys + ".seen:*" + settings + keys + ".fleet:* -@all" +
		permitted(commands)
}

// union returns all of the commands, sorted.
func union(commands ...[]string) []string {
	all := slices.Concat(commands...)
	slices.Sort(all)
	return slices.Compact(all)
}

func permitted(commands []string) (text string) {
	for _, c := range commands {
		text += " +" + strings.ToLower(c)
	}
	return text
}
