package collect

import (
	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Rule returns the rule of a directive that belongs to no method, and the errors in it. If the limit is an expression, the rule has
// the limit 1.
func Rule(d annotations.Rule) (ratelimit.Rule, annotations.Diagnostics) {
	c, r := &collector{}, &model.Rule{Rule: d, Declared: fields.Of(d)}
	c.isValid(r)
	return r.Declared, c.found
}
