package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ratelimit-go/ratelimit/internal/rulelist"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// readListed returns the rules in a file. It leaves out rules of instance scope.
func readListed(path string) ([]ratelimit.UsedRule, error) {
	text, err := os.ReadFile(path)
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, misused(fmt.Sprintf("-rules: %s: %v", path, wrong.Err))
	}
	rows, err := rulelist.Decode(text)
	if err != nil {
		return nil, misused(fmt.Sprintf("-rules: %s: %v", path, err))
	}
	var methods []string
	byMethod := map[string][]ratelimit.Rule{}
	for _, row := range rows {
		rule, err := row.AsRule()
		if err != nil {
			return nil, misused(fmt.Sprintf("-rules: %s: rule %s: %v", path, row.Rule, err))
		}
		if byMethod[row.Method] == nil {
			methods = append(methods, row.Method)
		}
		byMethod[row.Method] = append(byMethod[row.Method], rule)
	}
	var prepared []*wrap.Rules
	for _, method := range methods {
		prepared = append(prepared, wrap.NewRules(method, byMethod[method]...))
	}
	var found []ratelimit.UsedRule
	for _, rule := range wrap.NewType(path, prepared...).Rules() {
		if rule.Scope == ratelimit.ScopeFleet {
			found = append(found, ratelimit.UsedRule{Rule: rule})
		}
	}
	return found, nil
}
