package generator

import (
	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ParseRule reads the arguments of a rule directive, such as limit=10 per=1m. It returns the directive, which has the expressions,
// and the rule with everything else: its limit is 1 if the directive's is an expression. The error says on one line all that is
// wrong, without a position.
func ParseRule(arguments string) (annotations.Rule, ratelimit.Rule, error) {
	directive, err := annotations.ParseRule(arguments)
	if err != nil {
		return annotations.Rule{}, ratelimit.Rule{}, err
	}
	rule, errs := collect.Rule(directive)
	return directive, rule, errs.OneLine()
}
