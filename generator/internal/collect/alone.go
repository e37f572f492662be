package collect

import (
	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rule returns what a rule directive says that stands on nothing, and what is wrong with it. A limit that is an expression is 1.
func Rule(d annotations.Rule) (ratelimit.Rule, annotations.Diagnostics) {
	c, r := &collector{}, &model.Rule{Rule: d, Limit: fields.Of(d)}
	c.isValid(r)
	return r.Limit, c.found
}
