package generator

import (
	"errors"
	"go/ast"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/collect"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// ParseRule reads the arguments of a rule directive, such as limit=10 per=1m. It returns the directive, which has the expressions,
// and the rule with everything else: its limit is 1 if the directive's is an expression. The error says on one line all that is
// wrong, without a position.
func ParseRule(arguments string) (annotations.Rule, ratelimit.Rule, error) {
	comment := &ast.Comment{Slash: 1, Text: "//ratelimit:rule " + arguments}
	group, errs := annotations.Parse(&ast.CommentGroup{List: []*ast.Comment{comment}})
	if len(errs) > 0 {
		return annotations.Rule{}, ratelimit.Rule{}, oneLine(errs)
	}
	rule, errs := collect.Rule(group.Rules[0])
	return group.Rules[0], rule, oneLine(errs)
}

func oneLine(errs annotations.Diagnostics) error {
	var texts []string
	for _, e := range errs {
		texts = append(texts, e.Msg)
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
