package generator

import (
	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ParseRule reads the arguments of a rule directive, such as limit=10 per=1m. It returns the directive, which holds the
// expressions, and the rule, which holds everything else. If the limit is an expression, the rule has Computed. The error lists
// all mistakes on one line, without positions.
func ParseRule(arguments string) (annotations.Rule, ratelimit.Rule, error) {
	directive, err := annotations.ParseRule(arguments)
	if err != nil {
		return annotations.Rule{}, ratelimit.Rule{}, err
	}
	rule, errs := collect.Rule(directive)
	return directive, rule, errs.OneLine()
}
