package redisstore

import (
	"slices"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Commands returns the commands of Redis that a store of this package runs for the decisions of the rules, in alphabetical order: a user of
// the server needs permission for them on keys of the prefix. Without rules they are those that every rule needs. A cluster's clients
// need CLUSTER SLOTS as well. "ratelimitctl acl" also says what else limiters run, and why. The error is a *ratelimit.RuleError if a rule
// is not valid.
func Commands(rules ...ratelimit.Rule) ([]string, error) {
	var numbers []*engine.Rule
	for _, rule := range rules {
		n, err := bridge.Numbers(rule)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	names := commandsOf(numbers)
	slices.Sort(names)
	return names, nil
}

// commandsOf returns what the script runs for the rules, how it is run, and how overrides and blocks are read.
func commandsOf(rules []*engine.Rule) []string {
	return append(lua.Commands(rules...), "EVAL", "EVALSHA", "HSCAN")
}
