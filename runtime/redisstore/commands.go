package redisstore

import (
	"slices"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Commands returns the Redis commands that a store of this package runs to decide the rules, in alphabetical order. The user needs permission
// for them on keys of the prefix. Without rules, Commands returns the commands that every rule needs. A cluster's clients also need CLUSTER
// SLOTS. "ratelimitctl acl" prints what else limiters run, and why. The error is a *ratelimit.RuleError if a rule is not valid.
func Commands(rules ...ratelimit.Rule) ([]string, error) {
	var numbers []*engine.Rule
	for _, rule := range rules {
		p, err := ratelimit.Prepare("", rule)
		if err != nil {
			return nil, err
		}
		for _, count := range p.All[0].Counts() {
			numbers = append(numbers, &count.Numbers)
		}
	}
	names := commandsOf(numbers)
	slices.Sort(names)
	return names, nil
}

// commandsOf returns the commands that the script runs for the rules, those that run the script, and those that read overrides, blocks, pauses
// and the rules in use.
func commandsOf(rules []*engine.Rule) []string {
	return append(lua.Commands(rules...), "EVAL", "EVALSHA", "HMGET", "HSCAN", "MGET", "ZRANGEBYSCORE")
}
